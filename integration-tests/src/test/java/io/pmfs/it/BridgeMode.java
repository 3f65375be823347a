package io.pmfs.it;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** The ways from the kernel to the daemon, for suites that are worth running on each. */
enum BridgeMode {
  PAGE_CACHE,
  PASSTHROUGH,
  JNR;

  private String bridge() {
    return this == JNR ? "jnr" : "kernel";
  }

  private List<String> options() {
    return switch (this) {
      case PAGE_CACHE -> List.of("--bridge", "kernel", "--read-mode", "page-cache");
      case PASSTHROUGH -> List.of("--bridge", "kernel", "--read-mode", "passthrough");
      case JNR -> List.of("--bridge", "jnr");
    };
  }

  /** Mounts this way, or skips the test where this machine cannot. */
  MountedPmfs mount(Installation pmfs, Duration lifetime, Path source, String... more) {
    Machine.requireFuse();
    if (this == PASSTHROUGH) {
      Machine.requireRoot();
    }
    List<String> all = new ArrayList<>(options());
    all.addAll(List.of(more));
    MountedPmfs mount = pmfs.mount(lifetime, source, all.toArray(String[]::new));
    if (!mount.status().text("bridge").toLowerCase(java.util.Locale.ROOT).contains(bridge())) {
      throw new AssertionError("not mounted through " + bridge() + ": " + mount.status());
    }
    return mount;
  }
}
