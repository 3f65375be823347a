package io.pmfs.tasks;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.memory.CollectingSink;
import io.pmfs.metadata.FileName;
import io.pmfs.tier.DirectPool;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Readers and tasks together, in a JVM with exactly as much direct memory as the pools. */
@Timeout(180)
final class SmallMemoryTest {
  private static final int FILES = 120;
  private static final int READERS = 64;
  private static final int READER_BYTES = 8 << 20; // as in Dataset

  /** The pools of tasks, fetching, frames, storing and scratch: docs/operations.md has the sum. */
  private static final long POOL_BYTES = 176L << 20;

  @TempDir private Path directory;

  @Test
  void readersAndTasks_inTheAccountedMemory_neverLackIt() throws Exception {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx192m",
                "-XX:MaxDirectMemorySize=" + (POOL_BYTES + READER_BYTES),
                "-cp",
                System.getProperty("java.class.path"),
                SmallMemoryTest.class.getName(),
                directory.toString())
            .redirectErrorStream(true)
            .start();
    String output = new String(process.getInputStream().readAllBytes(), UTF_8);

    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(output).doesNotContain("OutOfMemoryError").contains("all were answered");
    assertThat(process.exitValue()).as(output).isZero();
  }

  /** Runs in the other JVM; the argument is a directory. */
  public static void main(String... arguments) throws Exception {
    long seed = System.nanoTime();
    System.out.println("seed " + seed);
    try (Dataset dataset = dataset(Path.of(arguments[0]))) {
      List<Long> numbers = new ArrayList<>();
      for (int i = 0; i < FILES; i++) {
        numbers.add(dataset.number("f" + i));
      }
      ExecutorService threads = Executors.newFixedThreadPool(READERS);
      List<Future<?>> readers = new ArrayList<>();
      for (int i = 0; i < READERS; i++) {
        Random random = new Random(seed + i);
        readers.add(
            threads.submit(
                () -> {
                  for (int round = 0; round < 30; round++) {
                    long number = numbers.get(random.nextInt(FILES));
                    dataset.fs.read(number, 0, 1 << 20, new CollectingSink());
                  }
                  return true;
                }));
      }
      for (TaskRequest request : requests()) {
        FileTask task = dataset.tasks.start(request);
        if (!task.await(Duration.ofSeconds(60))) {
          throw new IllegalStateException(request + " does not end: " + task.progress());
        }
        System.out.println(request + ": " + task.progress());
      }
      for (Future<?> reader : readers) {
        reader.get();
      }
      threads.shutdown();
    }
    System.out.println("all were answered; direct memory: " + (DirectPool.bytes() >> 20) + " MiB");
  }

  /** Files of 3 bytes to 2 MiB in 40 sequences; the tier holds half of them. */
  private static Dataset dataset(Path directory) throws Exception {
    return new Dataset(
        directory,
        store -> {
          for (int i = 0; i < FILES; i++) {
            store.file("f" + i, i, i % 3 == 0 ? 3 + i : 17_000L * i);
          }
          store.pack(40);
        },
        FILES * 500_000L);
  }

  private static List<TaskRequest> requests() {
    List<FileName> all = List.of(FileName.of(""));
    TaskRequest.Limits jobs = new TaskRequest.Limits(64, 0, 0);
    TaskRequest stage = new TaskRequest.Stage(TaskPaths.of(all), jobs, null, false, false, false);
    TaskRequest verify = new TaskRequest.Verify(TaskPaths.of(all), true, false);
    return List.of(stage, verify, new TaskRequest.Evict(TaskPaths.of(all)), stage, verify, verify);
  }
}
