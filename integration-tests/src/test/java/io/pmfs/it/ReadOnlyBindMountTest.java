package io.pmfs.it;

import java.nio.file.Path;

/** The calls on what the kernel itself mounts read-only: the reference for the errnos. */
final class ReadOnlyBindMountTest extends ReadOnlySuite {
  @Override
  Path lookAt(Path source) {
    Machine.requireRoot();
    return scratch.readOnlyBind("view", source);
  }

  @Override
  void lookAway() {}
}
