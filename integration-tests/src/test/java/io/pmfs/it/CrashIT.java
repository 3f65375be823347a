package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import io.pmfs.posix.Requested;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Daemons that end without being asked to, and what the next one finds. */
@ParameterizedClass
@EnumSource
final class CrashIT {
  @Parameter BridgeMode mode;

  @Installed(inEveryRun = BridgeMode.PASSTHROUGH)
  private Installation pmfs;

  @Test
  void kill9_duringStaging_nextMountServesEveryByte() {
    Dataset dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(300, 1_000_003));
    for (int round = 1; round <= 2; round++) {
      MountedPmfs mount = mode.mount(pmfs, dataset.root());
      Thread reader = new Thread(() -> touchAll(dataset, mount));
      long before = staged();
      reader.start();
      Await.until("a copy begun", Duration.ofSeconds(30), () -> staged() > before);
      mount.kill9();
      assertThat(staged()).as("staging was not done").isLessThan(dataset.bytes());
      assertEnds(reader);
    }
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(dataset.items().size());
    }
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      assertThat(mount.status().number("sourceOperations.reads")).isZero();
      mode.assertUsed(mount, dataset.items().get(0).name());
    }
  }

  private long staged() {
    return pmfs.copies().stream().mapToLong(f -> f.toFile().length()).sum();
  }

  private static void touchAll(Dataset dataset, MountedPmfs mount) {
    for (Dataset.Item item : dataset.items()) {
      // Fails from the moment the daemon is killed.
      if (Posix.readByte(mount.path(item.name())) < 0) {
        return;
      }
    }
  }

  private static void assertEnds(Thread thread) {
    Await.until("reader ended", Duration.ofSeconds(30), () -> !thread.isAlive());
  }

  @Test
  void kill9_afterStaging_copiesSurvive() {
    Dataset dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(20, 50_000));
    stageAll(dataset).kill9();
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      assertThat(mount.status().number("sourceOperations.reads")).isZero();
    }
  }

  @Test
  @OnRequest("cases")
  void kill9_andCopyDamaged_nothingIsServedUnverified() {
    Dataset dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(5, 300_000));
    stageAll(dataset).kill9();
    for (Dataset.Item item : dataset.items()) {
      Faults.flipByte(Dataset.copyOf(item, pmfs.tier()).file(), 250_000);
    }
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      assertThat(mount.status().number("staging.mismatches")).isPositive();
    }
  }

  private MountedPmfs stageAll(Dataset dataset) {
    MountedPmfs mount = mode.mount(pmfs, dataset.root());
    dataset.assertEqualBelow(mount.mountpoint());
    mount.awaitCopies(dataset.items().size());
    return mount;
  }

  /** A user's mount by the kernel bridge would be unmounted by its guard. */
  private void leaveStaleMount(Dataset dataset) {
    assumeTrue(Machine.isRoot() || mode == BridgeMode.JNR, "needs root");
    mode.mount(pmfs, dataset.root()).kill9();
  }

  @Test
  void mount_overStaleMount_cleansItUp() {
    Dataset dataset = Dataset.create(pmfs.directory("source"), 1000);
    leaveStaleMount(dataset);
    // Only a forced stat sees that the daemon is gone: the attributes were to last for long.
    String root = pmfs.mountpoint().toString();
    Await.until(
        "the mount is dead",
        Duration.ofSeconds(10),
        () -> Posix.outcome(Posix.statOutcome(root, Posix.AT_STATX_FORCE_SYNC)).equals("ENOTCONN"));
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      assertThat(Mounts.count(mount.mountpoint())).isEqualTo(1);
      dataset.assertEqualBelow(mount.mountpoint());
    }
  }

  @Test
  void umount_ofStaleMount_cleansItUp() {
    Dataset dataset = Dataset.create(pmfs.directory("source"), 1000);
    leaveStaleMount(dataset);
    pmfs.run("umount", pmfs.mountpoint().toString()).expect(0);
    assertThat(Mounts.at(pmfs.mountpoint())).isFalse();
  }

  @Test
  void status_ofStaleMount_failsWithOneLine() {
    Dataset dataset = Dataset.create(pmfs.directory("source"), 1000);
    leaveStaleMount(dataset);
    Command status = pmfs.run("status", pmfs.mountpoint().toString(), "--json");
    assertThat(status.exit()).as("%s", status).isIn(1, 3);
    assertThat(status.errorLines()).hasSize(1);
  }

  @Test
  void sigterm_ofDaemon_unmountsAndKeepsTheCopies() {
    Dataset dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(10, 50_000));
    MountedPmfs mount = stageAll(dataset);
    mount.signal("TERM");
    mount.awaitGone();
    mount.ended();
    assertThat(Mounts.at(pmfs.mountpoint())).isFalse();
    try (MountedPmfs again = mode.mount(pmfs, dataset.root())) {
      dataset.assertEqualBelow(again.mountpoint());
      assertThat(again.status().number("sourceOperations.reads")).isZero();
    }
  }

  /** A terminal or a session that ends takes no mount from those who read. */
  @Test
  void sighup_inBackground_changesNothing() {
    Dataset dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(10, 50_000));
    try (MountedPmfs mount = stageAll(dataset)) {
      Command.run("pkill", "-HUP", "-f", "pmfs-supervise .*" + pmfs.mountpoint());
      mount.signal("HUP");
      long daemon = mount.status().number("pid");
      // An unmount would take less time than these.
      for (int i = 0; i < 5; i++) {
        assertThat(mount.status().number("pid")).isEqualTo(daemon);
      }
      dataset.assertEqualBelow(mount.mountpoint());
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"INT", "TERM", "HUP"})
  void signal_inForeground_unmountsAndEnds(String signal) throws InterruptedException {
    Requested.assume("cases", signal.equals("INT"), "");
    Path source = Dataset.create(pmfs.directory("source"), 1000).root();
    Process process = pmfs.mountInForeground(source, mode.with());
    try {
      Await.until(
          "answers",
          Duration.ofSeconds(30),
          () -> Posix.readByte(pmfs.mountpoint() + "/part-000/file-00000") == 1);
      Command status = pmfs.run("status", "--json", pmfs.mountpoint().toString());
      mode.assertAsked(Status.parse(status.expect(0).out()));
      Command.run("kill", "-" + signal, Long.toString(process.pid())).expect(0);
      assertThat(process.waitFor(30, TimeUnit.SECONDS)).as("ends after SIG" + signal).isTrue();
      assertThat(Mounts.at(pmfs.mountpoint())).isFalse();
    } finally {
      process.destroyForcibly();
    }
  }
}
