package io.pmfs.mounts;

import io.pmfs.machine.MountTable;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A registry's record of a running daemon.
 *
 * @param device the device number of one of its mounts, as in mountinfo; null if unknown
 * @param detached whether its mount is no longer at the mount point, but has open files
 * @param sessions the device numbers of all its mounts; null in the file of an older pmfs
 * @param supervised whether another daemon replaces this one if it dies; null in the file of an
 *     older pmfs
 */
public record DaemonRecord(
    String mountpoint,
    String source,
    long pid,
    String socket,
    String logFile,
    @Nullable String device,
    boolean detached,
    @Nullable List<String> sessions,
    @Nullable Boolean supervised) {
  private static final int MOST_SESSIONS = 1024;

  /** A daemon whose mounts are unknown. */
  public static DaemonRecord of(
      String mountpoint, String source, long pid, String socket, String logFile) {
    return new DaemonRecord(mountpoint, source, pid, socket, logFile, null, false, null, null);
  }

  public DaemonRecord withDevice(@Nullable String other) {
    return new DaemonRecord(
        mountpoint, source, pid, socket, logFile, other, detached, sessions, supervised);
  }

  public DaemonRecord withSocket(Path other, boolean isDetached) {
    return new DaemonRecord(
        mountpoint,
        source,
        pid,
        other.toString(),
        logFile,
        device,
        isDetached,
        sessions,
        supervised);
  }

  /** The same daemon, named by another of its mount points. */
  public DaemonRecord withMountpoint(Path other) {
    return new DaemonRecord(
        other.toString(), source, pid, socket, logFile, device, false, sessions, supervised);
  }

  public DaemonRecord withSessions(List<String> devices) {
    return new DaemonRecord(
        mountpoint,
        source,
        pid,
        socket,
        logFile,
        device,
        detached,
        List.copyOf(devices),
        supervised);
  }

  /**
   * Whether another daemon may replace this one; the daemon of a user's own mount has no successor.
   */
  boolean mayBeReplaced() {
    return supervised == null || supervised;
  }

  /** The device numbers of its mounts. */
  public List<String> devices() {
    if (sessions != null) {
      return sessions;
    }
    return device == null ? List.of() : List.of(device);
  }

  /** Whether every field is valid; a file may contain anything. */
  boolean isSound() {
    return RecordFields.isPath(mountpoint)
        && RecordFields.isSource(source)
        && RecordFields.isProcess(pid)
        && RecordFields.isPath(socket)
        && RecordFields.isPath(logFile)
        && (device == null || RecordFields.isDevice(device))
        && (sessions == null
            || (sessions.size() <= MOST_SESSIONS
                && sessions.stream().allMatch(RecordFields::isDevice)));
  }

  /** The base name of its files in the registry. */
  String name() {
    return detached
        ? Registry.nameOf(Path.of(mountpoint), device)
        : Registry.nameOf(Path.of(mountpoint));
  }

  /** Whether this daemon may serve the given mount, which is attached at its mount point. */
  public boolean isOf(MountTable.Mount mount) {
    return device == null || shows(mount);
  }

  /**
   * Whether a mount is one of the daemon's sessions. Until the daemon publishes that a session has
   * ended, its record contains a device number that the kernel may have reused for another mount,
   * so the source must match too. Only mounts of the same source can then be confused.
   */
  public boolean shows(MountTable.Mount mount) {
    return devices().contains(mount.device()) && mount.source().equals(source);
  }
}
