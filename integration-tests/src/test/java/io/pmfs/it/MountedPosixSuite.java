package io.pmfs.it;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

/** The suite on a mount, through the bridge that the options choose. */
abstract class MountedPosixSuite extends PosixReadSuite {
  private final String bridge;
  private final List<String> options;
  private @Nullable Installation installation;
  private @Nullable MountedPmfs mount;

  /**
   * Sets how to mount.
   *
   * @param bridge what the status must name
   * @param options that choose it
   */
  MountedPosixSuite(String bridge, String... options) {
    this.bridge = bridge;
    this.options = List.of(options);
  }

  /** Before the mount. */
  void prepare(Installation made) {}

  @Override
  String lookAt(PosixTree tree) {
    Machine.requireFuse();
    Installation made = new Installation();
    prepare(made);
    installation = made;
    List<String> all = new ArrayList<>(options);
    // The sparse file of 5 GiB does not fit, all others do.
    all.addAll(List.of("--tier", "ssd:" + made.tier() + ":1G"));
    if (Machine.isRoot()) {
      all.add("--allow-other");
    }
    MountedPmfs mounted =
        made.mount(Duration.ofMinutes(5), Path.of(tree.root()), all.toArray(String[]::new));
    mount = mounted;
    return mounted.mountpoint().toString();
  }

  @Test
  void mount_isThroughThisBridgeReadOnlyNosuidNodev() {
    MountedPmfs mounted = java.util.Objects.requireNonNull(mount);
    assertThat(mounted.status().text("bridge")).containsIgnoringCase(bridge);
    assertThat(Mounts.options(mounted.mountpoint()).split(",", -1))
        .contains("ro", "nosuid", "nodev", "default_permissions");
  }

  @Override
  void lookAway() {
    try {
      if (mount != null) {
        mount.close();
      }
    } finally {
      if (installation != null) {
        installation.close();
      }
    }
  }
}
