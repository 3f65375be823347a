package io.pmfs.daemon.process;

import io.pmfs.fuse.mounting.MountException;
import io.pmfs.fuse.mounting.MountPoint;
import java.nio.file.Path;

/** Shows a session at one more place, which only root can do. */
public final class BindMount {
  private BindMount() {}

  /**
   * Binds one mount point to another place; returns why that failed, or nothing.
   *
   * @param device of the session that is at {@code from}
   * @param noExec whether no program may be executed there
   */
  public static String make(Path from, String device, Path to, boolean noExec) {
    try (MountPoint shown = MountPoint.open(from);
        MountPoint place = MountPoint.open(to)) {
      return place.bind(shown, device, noExec) ? "" : from + " is no longer mounted";
    } catch (MountException e) {
      return String.valueOf(e.getMessage());
    }
  }
}
