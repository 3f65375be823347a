package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Daemons that die, hang or are replaced while files are read: nobody notices more than a pause.
 */
final class SupervisorIT {
  private static final int READERS = 4;
  private static final int KILLS = 4;
  private static final Duration SUCCESSOR = Duration.ofSeconds(60);

  private Installation pmfs;
  private Dataset dataset;

  @BeforeEach
  void install() {
    Machine.requireRoot();
    Machine.requireFuse();
    pmfs = new Installation();
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(200, 150_000));
  }

  @AfterEach
  void remove() {
    if (pmfs != null) {
      pmfs.close();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"page-cache", "passthrough"})
  void kill9_underReaders_noReadFailsAndNoByteIsWrong(String mode) {
    try (MountedPmfs mount = pmfs.mount(dataset.root(), "--read-mode", mode);
        Readers readers = new Readers(mount.mountpoint())) {
      for (int kill = 0; kill < KILLS; kill++) {
        long pid = pidOf(mount);
        readers.awaitMore(200);
        signal("KILL", pid);
        awaitSuccessor(mount, pid);
      }
      readers.awaitMore(200);
      readers.assertNoFailures();
      assertThat(mount.status().number("tiers.0.copies")).isPositive();
    }
  }

  @Test
  void stop_ofTheDaemon_isNoticedAndItIsReplaced() {
    pmfs.environment("PMFS_WATCHDOG", "4");
    try (MountedPmfs mount = pmfs.mount(dataset.root());
        Readers readers = new Readers(mount.mountpoint())) {
      readers.awaitMore(50);
      long pid = pidOf(mount);
      signal("STOP", pid);
      awaitSuccessor(mount, pid);
      readers.awaitMore(50);
      readers.assertNoFailures();
    }
  }

  @Test
  void upgrade_underReaders_startsAnotherDaemonThatStoppedCleanlyBefore() {
    try (MountedPmfs mount = pmfs.mount(dataset.root());
        Readers readers = new Readers(mount.mountpoint())) {
      readers.awaitMore(50);
      long pid = pidOf(mount);
      assertThat(pmfs.run("upgrade", mount.mountpoint().toString()).exit()).isZero();
      assertThat(pidOf(mount)).isNotEqualTo(pid);
      readers.awaitMore(200);
      readers.assertNoFailures();
    }
  }

  @Test
  void crashLoop_endsUnmounted() {
    MountedPmfs mount = pmfs.mount(dataset.root());
    long pid = pidOf(mount);
    for (int kill = 0; kill < 6; kill++) {
      signal("KILL", pid);
      if (kill < 5) {
        pid = awaitSuccessor(mount, pid);
      }
    }
    Await.until(
        "unmounted",
        SUCCESSOR,
        () -> pmfs.run("status", mount.mountpoint().toString()).exit() == 3);
    assertThat(mount.mountpoint()).isEmptyDirectory();
    mount.ended();
  }

  @Test
  void kill9_ofSupervisorAndDaemon_theNextMountCleansUp() {
    MountedPmfs mount = pmfs.mount(dataset.root());
    mount.kill9();
    try (MountedPmfs next = pmfs.mount(dataset.root())) {
      dataset.assertEqualBelow(next.mountpoint());
    }
  }

  private static long pidOf(MountedPmfs mount) {
    return mount.status().number("pid");
  }

  private static void signal(String name, long pid) {
    Command.run("kill", "-" + name, Long.toString(pid)).expect(0);
  }

  private long awaitSuccessor(MountedPmfs mount, long predecessor) {
    AtomicLong pid = new AtomicLong();
    Await.until(
        "a successor of " + predecessor,
        SUCCESSOR,
        () -> {
          Command status = pmfs.run("status", mount.mountpoint().toString(), "--json");
          if (status.exit() != 0) {
            return false;
          }
          pid.set(Status.parse(status.out()).number("pid"));
          return pid.get() != predecessor;
        });
    return pid.get();
  }

  /** Threads that read files in random order and compare every byte, until closed. */
  private final class Readers implements AutoCloseable {
    private final List<Thread> threads = new ArrayList<>();
    private final Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
    private final AtomicLong read = new AtomicLong();
    private volatile boolean stopping;

    Readers(Path mountpoint) {
      for (int i = 0; i < READERS; i++) {
        Random random = new Random(i);
        Thread thread = new Thread(() -> readOn(mountpoint, random), "reader-" + i);
        threads.add(thread);
        thread.start();
      }
    }

    private void readOn(Path mountpoint, Random random) {
      try {
        while (!stopping) {
          Dataset.Item item = dataset.items().get(random.nextInt(dataset.items().size()));
          Dataset.assertEqualBelow(mountpoint, item);
          if (read.incrementAndGet() % 100 == 0) {
            // Else the kernel soon answers everything from memory.
            Machine.dropCaches();
          }
        }
      } catch (Throwable e) {
        failures.add(e);
      }
    }

    void awaitMore(int count) {
      long goal = read.get() + count;
      Await.until("reads", SUCCESSOR, () -> read.get() >= goal || !failures.isEmpty());
    }

    void assertNoFailures() {
      assertThat(failures).isEmpty();
    }

    @Override
    public void close() {
      stopping = true;
      for (Thread thread : threads) {
        Await.until("reader ended", SUCCESSOR, () -> !thread.isAlive());
      }
    }
  }
}
