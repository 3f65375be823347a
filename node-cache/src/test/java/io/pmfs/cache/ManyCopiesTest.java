package io.pmfs.cache;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Memory and the time of a start do not grow with the number of copies. */
@OnRequest(value = "large", what = "makes 2 million copies")
final class ManyCopiesTest {
  private static final int COPIES = Integer.getInteger("pmfs.cache.copies", 2_000_000);

  /** Limits the heap of the service. The copies are empty files, to be faster. */
  @Test
  void open_twoMillionCopies_takesSecondsAndLittleMemory(@TempDir Path directory) throws Exception {
    for (String step : new String[] {"make", "use", "lose"}) {
      Process run =
          new ProcessBuilder(
                  Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                  "-Xmx256m",
                  "-XX:+UseSerialGC",
                  "-Dpmfs.cache.copies=" + COPIES,
                  "-cp",
                  System.getProperty("java.class.path"),
                  ManyCopiesTest.class.getName(),
                  step,
                  System.getProperty("pmfs.cache.directory", directory.toString()))
              .redirectErrorStream(true)
              .start();
      String output = new String(run.getInputStream().readAllBytes(), UTF_8);
      System.out.print(output);
      assertThat(run.waitFor()).as(output).isZero();
    }
  }

  /** Makes copies, or opens them and makes more, which evicts some, or finds them by name. */
  public static void main(String[] arguments) throws Exception {
    Path directory = Path.of(arguments[1]);
    boolean isUse = arguments[0].equals("use");
    boolean isLost = arguments[0].equals("lose");
    Instant now = Instant.now().plus(isUse ? Duration.ofHours(2) : Duration.ZERO);
    InstantSource clock = InstantSource.fixed(now);
    long begun = System.nanoTime();
    CacheRules rules =
        new CacheRules(
            new Space(1L << 50, COPIES), Duration.ofHours(1), CacheService.Limits.of(1L << 50));
    byte[] boot = {(byte) (isLost ? 2 : 1)};
    SharedCopies copies = SharedCopiesTest.open(directory, boot, rules, clock);
    report(arguments[0] + ": opened", begun, copies);
    if (isUse) {
      requireSeconds(begun, 10);
      make(copies, COPIES, COPIES + 10_000);
      report("10,000 more", begun, copies);
    } else if (!isLost) {
      make(copies, 0, COPIES);
      report("made", begun, copies);
    }
    assertThat(copies.room().copies()).isEqualTo(COPIES);
    System.exit(0); // as if it was killed
  }

  private static void make(SharedCopies copies, int first, int end) throws Exception {
    for (int inode = first; inode < end; inode++) {
      int user = 1000 + inode % 3;
      CopyKey key =
          new CopyKey(0xf5, 7L * inode, 0, Instant.ofEpochSecond(1_700_000_000L, inode), EPOCH);
      SharedCopy copy = Objects.requireNonNull(copies.make(key, user).copy());
      try (FileChannel file = copies.write(copy)) {
        assertThat(file.size()).isZero();
      }
      copies.complete(copy, 0);
      copies.release(copy, user);
    }
  }

  private static final Instant EPOCH = Instant.EPOCH;

  private static void requireSeconds(long begun, long limit) {
    assertThat(Duration.ofNanos(System.nanoTime() - begun)).isLessThan(Duration.ofSeconds(limit));
  }

  private static void report(String what, long begun, SharedCopies copies) {
    Duration took = Duration.ofNanos(System.nanoTime() - begun);
    System.gc();
    Runtime memory = Runtime.getRuntime();
    System.out.printf(
        "%s after %.1f s: %,d copies, %,d evicted, %d MiB of heap%n",
        what,
        took.toMillis() / 1000.0,
        copies.room().copies(),
        copies.room().evicted(),
        (memory.totalMemory() - memory.freeMemory()) >> 20);
  }
}
