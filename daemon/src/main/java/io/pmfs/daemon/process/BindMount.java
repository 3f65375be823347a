package io.pmfs.daemon.process;

import io.pmfs.fuse.mounting.MountException;
import io.pmfs.fuse.mounting.MountPoint;
import java.nio.file.Path;

/** Bind mounts of a session, which only root can make. */
public final class BindMount {
  private BindMount() {}

  /**
   * Binds a mount point to another place; returns the reason for a failure, or an empty string.
   *
   * @param device the device number of the session at {@code from}
   * @param noExec whether to mount it noexec
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
