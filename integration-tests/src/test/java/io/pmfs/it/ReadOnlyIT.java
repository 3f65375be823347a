package io.pmfs.it;

import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/** The calls on a mount. */
class ReadOnlyIT extends ReadOnlySuite {
  private @Nullable Installation installation;
  private @Nullable MountedPmfs mount;

  @Override
  Path lookAt(Path source) {
    Machine.requireFuse();
    Installation made = new Installation();
    installation = made;
    MountedPmfs mounted = mountOn(made, source);
    mount = mounted;
    return mounted.mountpoint();
  }

  MountedPmfs mountOn(Installation pmfs, Path source) {
    return pmfs.mount(source);
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
