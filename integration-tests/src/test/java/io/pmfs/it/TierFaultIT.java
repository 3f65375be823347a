package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.it.Dataset.Item;
import io.pmfs.posix.Await;
import io.pmfs.posix.OnRequest;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Tiers that lose, damage or refuse copies. The reader never notices. */
@ParameterizedClass
@EnumSource
final class TierFaultIT {
  private static final int SIZE = 300_000;
  private static final int COUNT = 6;

  @Parameter BridgeMode mode;

  @Installed(inEveryRun = BridgeMode.PAGE_CACHE)
  private Installation pmfs;

  private Dataset dataset;

  @BeforeEach
  void makeSource() {
    dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(COUNT, SIZE));
  }

  private void fillTier() {
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(COUNT);
    }
  }

  private Path copy(int index) {
    return Dataset.copyOf(dataset.items().get(index), pmfs.tier()).file();
  }

  @Test
  void copy_damagedWhileUnmounted_isDroppedAndTheSourceServed() {
    fillTier();
    Faults.flipByte(copy(0), 0);
    Faults.flipByte(copy(1), SIZE / 2);
    Faults.flipByte(copy(2), SIZE - 1);
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      Status status = mount.awaitCopies(COUNT);
      assertThat(status.number("staging.mismatches")).as("%s", status).isEqualTo(3);
      assertThat(status.number("sourceOperations.bytes")).isBetween(3L * SIZE, 6L * SIZE);
    }
    assertTierIsWholeAgain();
  }

  @Test
  void copy_damagedWhileMountedBeforeItsFirstRead_isDroppedAndTheSourceServed() {
    fillTier();
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      Faults.flipByte(copy(3), 123_456);
      dataset.assertEqualBelow(mount.mountpoint());
      Status status = mount.awaitCopies(COUNT);
      assertThat(status.number("staging.mismatches")).as("%s", status).isEqualTo(1);
    }
    assertTierIsWholeAgain();
  }

  private void assertTierIsWholeAgain() {
    for (Item item : dataset.items()) {
      assertThat(Dataset.copyOf(item, pmfs.tier()).file()).isRegularFile();
    }
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      Status status = mount.status();
      assertThat(status.number("sourceOperations.reads")).as("%s", status).isZero();
      mode.assertUsed(mount, dataset.items().get(0).name());
    }
  }

  @Test
  void copy_swappedWithAnother_isNotServed() {
    fillTier();
    Command.run("cp", copy(0).toString(), copy(1).toString()).expect(0);
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
    }
  }

  @Test
  @OnRequest("cases")
  void copy_truncatedOrDeletedWhileUnmounted_theSourceIsServed() {
    fillTier();
    Faults.truncate(copy(0), 0);
    Faults.truncate(copy(1), SIZE - 1);
    Faults.delete(copy(2));
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(COUNT);
    }
    assertTierIsWholeAgain();
  }

  @Test
  @OnRequest("cases")
  void copy_truncatedOrDeletedAfterItWasRead_theSourceIsServed() {
    Machine.requireRoot();
    fillTier();
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      // The first read verifies the copies, so that they may be left to the kernel at the second.
      dataset.assertEqualBelow(mount.mountpoint());
      dataset.assertEqualBelow(mount.mountpoint());
      mode.assertUsed(mount, dataset.items().get(3).name());
      Faults.truncate(copy(0), 4096);
      Faults.truncate(copy(1), 0);
      Faults.delete(copy(2));
      Machine.forget(mount.mountpoint());
      dataset.assertEqualBelow(mount.mountpoint());
      assertThat(MountedPmfs.runs(mount.pid())).isTrue();
    }
  }

  @Test
  void tier_deletedWhileMounted_theSourceIsServed() {
    fillTier();
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      Dataset.assertEqualBelow(mount.mountpoint(), dataset.items().get(0));
      Faults.delete(pmfs.tier());
      if (Machine.isRoot()) {
        Machine.forget(mount.mountpoint());
      }
      dataset.assertEqualBelow(mount.mountpoint());
    }
  }

  @Test
  @OnRequest("cases")
  void tier_emptiedBetweenMounts_isFilledAgain() {
    fillTier();
    pmfs.copies().forEach(Faults::delete);
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitCopies(COUNT);
    }
    assertTierIsWholeAgain();
  }

  @Test
  void state_deletedBetweenMounts_nothingWrongIsServed() {
    fillTier();
    Installation.files(pmfs.state()).forEach(Faults::delete);
    Faults.flipByte(copy(0), 1000);
    try (MountedPmfs mount = mode.mount(pmfs, dataset.root())) {
      dataset.assertEqualBelow(mount.mountpoint());
    }
  }

  @Test
  void tier_withoutRoomForOneFile_takesLaterSmallerOnes() {
    int[] sizes = {5_000_000, 6_000_000, 1_000_000, 1_000_001, 3_000_000, 500_000};
    Dataset mixed = Dataset.create(pmfs.directory("mixed"), sizes);
    try (MountedPmfs mount =
        mode.mount(pmfs, mixed.root(), "--tier", "ssd:" + pmfs.tier() + ":8M")) {
      for (int i = 0; i < sizes.length; i++) {
        Dataset.assertEqualBelow(mount.mountpoint(), mixed.items().get(i));
        mount.awaitStagingIdle();
      }
      Status status = mount.awaitCopies(4);
      assertThat(status.number("tiers.0.copies")).as("%s", status).isEqualTo(4);
      assertThat(status.number("tiers.0.usedBytes")).isBetween(7_500_001L, 8L << 20);
      assertThat(status.number("tiers.0.capacityBytes")).isEqualTo(8L << 20);
    }
    for (int i : List.of(0, 2, 3, 5)) {
      assertThat(Dataset.copyOf(mixed.items().get(i), pmfs.tier()).file()).isRegularFile();
    }
  }

  @Test
  void tiers_inOrder_theSecondTakesWhatTheFirstHasNoRoomFor() {
    int size = 2 * SIZE;
    Dataset larger = Dataset.create(pmfs.directory("larger"), Dataset.sizes(COUNT, size));
    Path second = pmfs.directory("second");
    String first = "ssd:" + pmfs.tier() + ":" + 2 * (size + 8192);
    try (MountedPmfs mount =
        mode.mount(pmfs, larger.root(), "--tier", first, "--tier", "ssd:" + second)) {
      larger.assertEqualBelow(mount.mountpoint());
      Await.until(
          "all copies",
          java.time.Duration.ofSeconds(60),
          () -> mount.status().number("tiers.1.copies") >= COUNT - 2);
      Status status = mount.awaitStagingIdle();
      assertThat(status.number("tiers.0.copies")).as("%s", status).isEqualTo(2);
      assertThat(status.number("tiers.1.copies")).as("%s", status).isEqualTo(COUNT - 2);
    }
  }

  @Test
  @OnRequest("cases")
  void tier_smallerThanItsCapacity_servesWhatFitsAndTheSourceTheRest() {
    Machine.requireRoot();
    Path small = pmfs.scratch().tmpfs("small", "size=1M,mode=700");
    assertFullTierHarmless("ssd:" + small + ":1G");
  }

  /** Without inodes a disk has bytes free and answers ENOSPC to each new file. */
  @Test
  void tier_answeringEnospc_isTurnedOffAndTheSourceServed() {
    Machine.requireRoot();
    Path full = pmfs.scratch().tmpfs("full", "size=100M,nr_inodes=7,mode=700");
    Status status = assertFullTierHarmless("ssd:" + full);
    assertThat(status.text("tiers.0.reason")).as("%s", status).isNotEmpty();
  }

  private Status assertFullTierHarmless(String tier) {
    Status status;
    try (MountedPmfs mount = mountBeforeAnother(tier)) {
      dataset.assertEqualBelow(mount.mountpoint());
      status = mount.awaitStagingIdle();
      assertThat(status.number("tiers.0.copies")).as("%s", status).isLessThan(COUNT);
      if (Machine.isRoot()) {
        Machine.forget(mount.mountpoint());
      }
      dataset.assertEqualBelow(mount.mountpoint());
    }
    return status;
  }

  @Test
  void tier_turnedReadOnly_isTurnedOffAndTheSourceServed() {
    FaultyDisk disk = FaultyDisk.create(pmfs.scratch(), "disk", "64M");
    Path tier = disk.directory().resolve("tier");
    try (MountedPmfs mount = mountBeforeAnother("ssd:" + tier)) {
      Dataset.assertEqualBelow(mount.mountpoint(), dataset.items().get(0));
      String healthy = mount.awaitCopies(1).text("tiers.0.state");
      disk.turnReadOnly();
      assertThat(Posix.outcome(Posix.open(tier + "/x", Posix.O_WRONLY | Posix.O_CREAT)))
          .isEqualTo("EROFS");
      dataset.assertEqualBelow(mount.mountpoint());
      assertTurnedOff(mount.awaitStagingIdle(), healthy);
    }
  }

  /** The state lies in the last tier, and stays; StateFaultIT is about disks that have both. */
  private MountedPmfs mountBeforeAnother(String tier) {
    return mode.mount(pmfs, dataset.root(), "--tier", tier, "--tier", "ssd:" + pmfs.tier());
  }

  private static void assertTurnedOff(Status status, String healthy) {
    assertThat(status.text("tiers.0.state")).as("%s", status).isNotEqualTo(healthy);
    assertThat(status.text("tiers.0.reason")).as("%s", status).isNotEmpty();
    assertThat(status.number("reads.errors")).as("%s", status).isZero();
  }

  @Test
  void tier_failingWithEio_isTurnedOffAndTheSourceServed() {
    FaultyDisk disk = FaultyDisk.create(pmfs.scratch(), "disk", "64M");
    Path tier = disk.directory().resolve("tier");
    try (MountedPmfs mount = mountBeforeAnother("ssd:" + tier)) {
      for (Item item : dataset.items().subList(0, COUNT / 2)) {
        Dataset.assertEqualBelow(mount.mountpoint(), item);
      }
      String healthy = mount.awaitCopies(COUNT / 2).text("tiers.0.state");
      disk.shutDown();
      Machine.dropCaches();
      dataset.assertEqualBelow(mount.mountpoint());
      assertTurnedOff(mount.awaitStagingIdle(), healthy);
      assertThat(pmfs.run("doctor", mount.mountpoint().toString()).expect(4).out())
          .containsPattern(
              "part +tier ssd +" + tier + "/.*: turned off until the next mount: .*; reads use the")
          .contains("is not healthy: it works in part: tier ssd");
    }
  }
}
