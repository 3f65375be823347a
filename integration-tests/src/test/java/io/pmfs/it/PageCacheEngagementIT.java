package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** What status says when the kernel answers a whole epoch by itself; see {@link EngagementIT}. */
@Tag("alone") // counts what the kernel asks for: other tests empty its caches
final class PageCacheEngagementIT {
  private static final int FILES = 60;

  @Installed(byRoot = true)
  private Installation pmfs;

  /** Such an epoch makes hardly any request, so it says nothing new. */
  @Test
  void epochs_thatTheKernelAnswersFromItsPageCache_changeNothing() {
    Dataset dataset = Dataset.create(pmfs.directory("source"), Dataset.sizes(FILES, 300_000));
    try (MountedPmfs mount = pmfs.mount(dataset.root(), "--read-mode", "page-cache")) {
      dataset.assertEqualBelow(mount.mountpoint());
      mount.awaitStagingIdle();
      Status filled = status(mount);
      assertThat(filled.text("engagement.state")).as("%s", filled).isEqualTo("filling");

      dataset.assertEqualBelow(mount.mountpoint());

      Status again = status(mount);
      // Some pages may have been reclaimed.
      assertThat(again.number("reads.requests")).isLessThan(FILES + FILES / 2);
      assertThat(again.text("engagement.state")).as("%s", again).isEqualTo("filling");
    }
  }

  private Status status(MountedPmfs mount) {
    return Status.parse(
        pmfs.run("status", mount.mountpoint().toString(), "--json").expect(0).out());
  }
}
