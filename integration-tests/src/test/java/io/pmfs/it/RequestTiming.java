package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.nio.file.ExtendedOpenOption;
import io.pmfs.posix.Await;
import io.pmfs.tier.DirectoryTier;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierSettings;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/**
 * What it costs to time every request: one mount, whose one reader passes the page cache by, while
 * the timing is on and off in turns. By its name it is no part of the integration tests; as root,
 * it is run by {@code -Dit.test=RequestTiming} for as many seconds for each size as
 * PMFS_TIMING_SECONDS says.
 */
final class RequestTiming {
  private static final int FILE_BYTES = 64 << 20;
  private static final Duration SLICE = Duration.ofMillis(50);
  private static final Duration WARM_UP = Duration.ofSeconds(10);

  public static void main(String[] arguments) throws Exception {
    new RequestTiming().read_timedAndNot_takesAboutAsLong();
  }

  @Test
  void read_timedAndNot_takesAboutAsLong() throws Exception {
    String given = System.getenv("PMFS_TIMING_SECONDS");
    long seconds = given == null ? 20 : Long.parseLong(given);
    try (Scratch scratch = new Scratch()) {
      Path tree = scratch.directory("tree");
      Files.write(tree.resolve("f"), new byte[FILE_BYTES]);
      TierSettings settings =
          new TierSettings("tier", "ssd", scratch.directory("tier"), 1L << 30, 0);
      try (OwnMount mount =
              new OwnMount(
                  scratch, tree, List.of(new DirectoryTier(settings, Tier.Usage.NONE, null)));
          FileChannel file =
              FileChannel.open(
                  mount.path("f"), StandardOpenOption.READ, ExtendedOpenOption.DIRECT)) {
        stage(mount, file);
        for (int size : new int[] {4096, 128 << 10, 1 << 20}) {
          compare(mount, file, size, seconds);
        }
      }
    }
  }

  private static void stage(OwnMount mount, FileChannel file) throws Exception {
    ByteBuffer buffer = buffer(1 << 20);
    for (long at = 0; at < FILE_BYTES; at += buffer.capacity()) {
      file.read(buffer.clear(), at);
    }
    Await.until("the file's copy", Duration.ofSeconds(60), () -> mount.copies() == 1);
  }

  /** Aligned as O_DIRECT wants it. */
  private static ByteBuffer buffer(int size) {
    return ByteBuffer.allocateDirect(size + 4096).alignedSlice(4096).slice(0, size);
  }

  private static void compare(OwnMount mount, FileChannel file, int size, long seconds)
      throws Exception {
    SplittableRandom random = new SplittableRandom(size);
    ByteBuffer buffer = buffer(size);
    slice(mount, file, buffer, random, true, WARM_UP);
    List<Double> ratios = new ArrayList<>();
    List<Double> off = new ArrayList<>();
    long end = System.nanoTime() + Duration.ofSeconds(seconds).toNanos();
    while (System.nanoTime() < end) {
      // ABBA: what drifts meets both alike.
      double first = slice(mount, file, buffer, random, false, SLICE);
      double on = slice(mount, file, buffer, random, true, SLICE);
      on += slice(mount, file, buffer, random, true, SLICE);
      double last = slice(mount, file, buffer, random, false, SLICE);
      off.add((first + last) / 2);
      ratios.add(on / (first + last));
    }
    ratios.sort(null);
    off.sort(null);
    int n = ratios.size();
    double error = 1.25 * (ratios.get(n * 3 / 4) - ratios.get(n / 4)) / 1.35 / Math.sqrt(n);
    System.out.printf(
        Locale.ROOT,
        "timing: reads of %7d bytes take %8.2f us; with the timing %+.2f %% (median of %d rounds,"
            + " +- %.2f)%n",
        size,
        off.get(n / 2) / 1e3,
        100 * (ratios.get(n / 2) - 1),
        n,
        200 * error);
    assertThat(ratios.get(n / 2)).isBetween(0.5, 2.0);
  }

  /** Nanoseconds for each read. */
  private static double slice(
      OwnMount mount,
      FileChannel file,
      ByteBuffer buffer,
      SplittableRandom random,
      boolean isTimed,
      Duration time)
      throws Exception {
    mount.bridge().latencies().record(isTimed);
    int places = FILE_BYTES / buffer.capacity();
    long begin = System.nanoTime();
    long count = 0;
    while (System.nanoTime() - begin < time.toNanos()) {
      for (int i = 0; i < 8; i++) {
        long at = (long) random.nextInt(places) * buffer.capacity();
        if (file.read(buffer.clear(), at) != buffer.capacity()) {
          throw new AssertionError("a short read at " + at);
        }
        count++;
      }
    }
    return (System.nanoTime() - begin) / (double) count;
  }
}
