package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * A daemon that is killed every second under readers, for a minute or as long as
 * PMFS_ENDURANCE_SECONDS says. By its name it is no part of the integration tests; {@code
 * scripts/endurance} runs it.
 */
final class Endurance {
  private static final int READERS = 4;

  @ParameterizedTest
  @EnumSource(names = {"PAGE_CACHE", "PASSTHROUGH"})
  void kill9_everySecond_noReadFailsAndNoByteIsWrong(BridgeMode mode) throws Exception {
    Machine.requireRoot();
    Machine.requireFuse();
    String given = System.getenv("PMFS_ENDURANCE_SECONDS");
    Duration time = Duration.ofSeconds(given == null ? 60 : Long.parseLong(given));
    try (Installation pmfs = new Installation()) {
      pmfs.environment("PMFS_CRASH_LIMIT", "1000000");
      Dataset dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(400, 150_000));
      try (MountedPmfs mount = mode.mount(pmfs, time.plusMinutes(3), dataset.root())) {
        // What is open in passthrough has a copy first.
        dataset.assertEqualBelow(mount.mountpoint());
        mount.awaitCopies(dataset.items().size());
        try (Readers readers =
            new Readers(dataset, mount.mountpoint(), READERS, dataset.items().subList(0, 50))) {
          readers.awaitMore(100);
          int kills = killOn(mount, readers, time);
          readers.awaitMore(100);
          System.out.printf(
              "endurance, %s: %d s, %d kills, %d reads by %d readers, %d failures, longest read %d ms%n",
              mode,
              time.toSeconds(),
              kills,
              readers.reads(),
              READERS,
              readers.failures(),
              readers.longest().toMillis());
          readers.assertNoFailures();
        }
        assertThat(mount.status().number("reads.errors")).isZero();
      }
    }
  }

  /** A successor lives until reads were answered, but one in four dies while it starts. */
  private static int killOn(MountedPmfs mount, Readers readers, Duration time)
      throws InterruptedException {
    Random random = new Random(1);
    long end = System.nanoTime() + time.toNanos();
    int kills = 0;
    while (System.nanoTime() < end && readers.failures() == 0) {
      long next = System.nanoTime() + Duration.ofSeconds(1).toNanos();
      kills += kill(mount);
      if (random.nextInt(4) == 0) {
        Thread.sleep(random.nextInt(1000));
        kills += kill(mount);
      }
      mount.awaitAnswer();
      readers.awaitMore(2 * READERS);
      Thread.sleep(Math.max(0, Duration.ofNanos(next - System.nanoTime()).toMillis()));
    }
    return kills;
  }

  private static int kill(MountedPmfs mount) {
    long pid = mount.daemon();
    return pid != 0 && ProcessHandle.of(pid).map(ProcessHandle::destroyForcibly).orElse(false)
        ? 1
        : 0;
  }
}
