package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A source that does not answer reads. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class BlockedSourceIT {
  private static final int READERS = 2 * OwnMount.WORKERS;

  private Scratch scratch;
  private Path tree;

  @BeforeEach
  void makeTree() throws IOException {
    Machine.requireFuse();
    Machine.requireRoot();
    scratch = new Scratch();
    tree = scratch.directory("tree");
    for (int i = 0; i < READERS; i++) {
      Files.write(tree.resolve("file" + i), new byte[5000]);
    }
  }

  @AfterEach
  void remove() {
    if (scratch != null) {
      scratch.close();
    }
  }

  @Test
  void reads_thatAllWaitForTheSource_leaveNamesAndAttributesAnswered() throws Exception {
    CountDownLatch opened = new CountDownLatch(1);
    AtomicInteger waiting = new AtomicInteger();
    ExecutorService threads = Executors.newCachedThreadPool();
    try (OwnMount mount = new OwnMount(scratch, tree)) {
      mount.before(
          operation -> {
            if (operation.equals("read")) {
              waiting.incrementAndGet();
              try {
                assertThat(opened.await(100, TimeUnit.SECONDS)).isTrue();
              } catch (InterruptedException e) {
                throw new AssertionError(e);
              }
            }
          });
      List<CompletableFuture<byte[]>> readers = new ArrayList<>();
      for (int i = 0; i < READERS; i++) {
        Path file = mount.path("file" + i);
        readers.add(CompletableFuture.supplyAsync(() -> read(file), threads));
      }
      try {
        Await.until(
            "reads that wait",
            java.time.Duration.ofSeconds(30),
            () -> waiting.get() >= OwnMount.WORKERS / 2);
        CompletableFuture<Boolean> names =
            CompletableFuture.supplyAsync(() -> Files.exists(mount.path("absent")), threads);
        assertThat(names.get(30, TimeUnit.SECONDS)).isFalse();
        // Who answered is idle again a moment after its answer.
        Await.until(
            "an idle worker",
            java.time.Duration.ofSeconds(30),
            () -> mount.bridge().hasIdleWorker());
      } finally {
        opened.countDown();
      }
      for (CompletableFuture<byte[]> reader : readers) {
        assertThat(reader.get(30, TimeUnit.SECONDS)).hasSize(5000);
      }
    } finally {
      opened.countDown();
      threads.shutdownNow();
    }
  }

  private static byte[] read(Path file) {
    try {
      return Files.readAllBytes(file);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }
}
