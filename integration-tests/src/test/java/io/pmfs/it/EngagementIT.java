package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.OnRequest;
import java.util.Arrays;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Whether status says of a mount that it does what it is for: the cases of docs/status.md. */
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class EngagementIT {
  private static final int FILES = 60;
  private static final int SIZE = 300_000;

  @Installed(byRoot = true)
  private Installation pmfs;

  private Dataset dataset;

  @BeforeEach
  void makeSource() {
    int[] sizes = new int[FILES];
    Arrays.fill(sizes, SIZE);
    dataset = Dataset.create(pmfs.directory("source"), sizes);
  }

  private MountedPmfs mount(String tierSize, String... options) {
    String[] all = Arrays.copyOf(options, options.length + 2);
    all[options.length] = "--tier";
    all[options.length + 1] = "ssd:" + pmfs.tier() + tierSize;
    return pmfs.mount(dataset.root(), all);
  }

  /** All files, in one order; the kernel has none of them in its cache then. */
  private void epoch(MountedPmfs mount) {
    dataset.assertEqualBelow(mount.mountpoint());
    mount.awaitStagingIdle();
    Machine.forget(mount.mountpoint());
  }

  private Status status(MountedPmfs mount, int exit) {
    return Status.parse(
        pmfs.run("status", mount.mountpoint().toString(), "--json").expect(exit).out());
  }

  private void assertState(MountedPmfs mount, String state, int exit) {
    Status status = status(mount, exit);
    assertThat(status.text("engagement.state")).as("%s", status).isEqualTo(state);
  }

  @Test
  void epochs_ofADatasetThatFits_fillAndThenAreEngaged() {
    try (MountedPmfs mount = mount("")) {
      assertState(mount, "unread", 0);
      epoch(mount);
      assertState(mount, "filling", 0);
      Status first = status(mount, 0);
      assertThat(first.number("reads.fromTiers")).as("%s", first).isZero();
      assertThat(first.number("tiers.0.hits")).as("%s", first).isZero();
      epoch(mount);
      assertState(mount, "engaged", 0);
      Status second = status(mount, 0);
      assertThat(second.number("reads.fromTiers")).as("%s", second).isEqualTo(dataset.bytes());
    }
  }

  @Test
  @OnRequest("cases")
  void epochs_ofADatasetOfWhichHalfFits_areEngagedFromTheSecondOn() {
    try (MountedPmfs mount = mount(":9M")) {
      epoch(mount);
      assertState(mount, "filling", 0);
      epoch(mount);
      assertState(mount, "engaged", 0);
    }
  }

  /**
   * The tier has room for 3 of the 60 files: whatever is evicted, and whenever, an epoch finds at
   * most 3 of them, and the limit is a tenth.
   */
  @Test
  @OnRequest("cases")
  void epochs_thatEvictWhatTheyNeedNext_areSourceOnly() {
    try (MountedPmfs mount = mount(":1M", "--eviction", "lru")) {
      epoch(mount);
      assertState(mount, "filling", 0);
      // Half of all copies have to be of files that had one, and some find no room.
      for (int i = 0; i < 5; i++) {
        epoch(mount);
      }
      assertState(mount, "source-only", 4);
      Status status = status(mount, 4);
      assertThat(status.text("engagement.reason")).contains("evicted before they are read again");
    }
  }

  @Test
  @OnRequest("cases")
  void epoch_ofWhatWasStaged_isEngaged() {
    try (MountedPmfs mount = mount("")) {
      pmfs.run("stage", mount.mountpoint().toString()).expect(0);
      assertState(mount, "unread", 0);
      epoch(mount);
      assertState(mount, "engaged", 0);
      Status status = status(mount, 0);
      assertThat(status.number("reads.fromTiers")).as("%s", status).isEqualTo(dataset.bytes());
    }
  }

  @Test
  @OnRequest("cases")
  void epoch_thatTheKernelReadsByItself_isEngaged() {
    Machine.requirePassthrough();
    try (MountedPmfs mount = mount("", "--read-mode", "passthrough")) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitStagingIdle();
      // Before anything is opened again: each open counts.
      assertState(mount, "filling", 0);
      epoch(mount);
      Status status = status(mount, 0);
      assertThat(status.number("reads.opensLeftToKernel")).as("%s", status).isPositive();
      assertThat(status.text("engagement.state")).as("%s", status).isEqualTo("engaged");
    }
  }
}
