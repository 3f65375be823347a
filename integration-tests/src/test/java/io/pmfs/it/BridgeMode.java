package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Await;
import io.pmfs.posix.Requested;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * The ways from the kernel to the daemon, for suites that are worth running on each. A mount that
 * does not go the way it was asked to is a failure.
 */
enum BridgeMode {
  PAGE_CACHE,
  PASSTHROUGH,
  JNR;

  private String bridge() {
    return this == JNR ? "jnr" : "kernel";
  }

  /** As the status names it; libfuse 2 knows no other than the page cache. */
  private String readMode() {
    return this == PASSTHROUGH ? "passthrough" : "page-cache";
  }

  private List<String> options() {
    return switch (this) {
      case PAGE_CACHE, PASSTHROUGH -> List.of("--bridge", "kernel", "--read-mode", readMode());
      case JNR -> List.of("--bridge", "jnr");
    };
  }

  /** Leaves a suite out of the ordinary run in all modes but one. */
  void runsInEveryRunIf(BridgeMode chosen) {
    Requested.assume("modes", this == chosen, "the same in another read mode or bridge");
  }

  /** Skips the test where this machine cannot mount this way. */
  void require() {
    Machine.requireFuse();
    if (this == PASSTHROUGH) {
      Machine.requireRoot();
      Machine.requirePassthrough();
    }
  }

  /** The options of a mount that goes this way, and then others. */
  String[] with(String... more) {
    List<String> all = new ArrayList<>(options());
    all.addAll(List.of(more));
    return all.toArray(String[]::new);
  }

  MountedPmfs mount(Installation pmfs, Path source, String... more) {
    return mount(pmfs, Duration.ofMinutes(2), source, more);
  }

  /** Mounts this way, or skips the test where this machine cannot. */
  MountedPmfs mount(Installation pmfs, Duration lifetime, Path source, String... more) {
    require();
    MountedPmfs mount = pmfs.mount(lifetime, source, with(more));
    assertAsked(mount);
    return mount;
  }

  private void assertAsked(MountedPmfs mount) {
    assertAsked(mount.status());
  }

  /** Of a mount that was made with these options. */
  void assertAsked(Status status) {
    assertBridge(status);
    assertThat(status.text("readMode")).as("%s", status).isEqualTo(readMode());
  }

  void assertBridge(MountedPmfs mount) {
    assertBridge(mount.status());
  }

  private void assertBridge(Status status) {
    assertThat(status.text("bridge").toLowerCase(Locale.ROOT)).as("%s", status).contains(bridge());
  }

  /**
   * Whether a file that has a copy is read the way that was asked for; until its copy is verified
   * the daemon reads it.
   */
  void assertUsed(MountedPmfs mount, String file) {
    assertAsked(mount);
    if (this == PASSTHROUGH) {
      Await.until(
          () -> "the kernel was left to read " + file + ": " + mount.status(),
          Duration.ofSeconds(60),
          () -> {
            assertThat(Posix.readByte(mount.path(file))).isOne();
            return mount.status().number("reads.opensLeftToKernel") > 0;
          });
    } else {
      assertThat(Posix.readByte(mount.path(file))).isOne();
      Status status = mount.status();
      assertThat(status.number("reads.opensLeftToKernel")).as("%s", status).isZero();
    }
  }
}
