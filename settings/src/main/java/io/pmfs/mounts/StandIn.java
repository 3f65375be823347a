package io.pmfs.mounts;

import io.pmfs.machine.MountTable;
import java.nio.file.Path;

/**
 * The source itself, mounted read-only where a session was whose daemons died again and again:
 * docs/decisions/0059. Only the mount table says whether it is still there.
 *
 * @param number the mount's number in mountinfo, which the kernel uses again
 * @param deaths how many daemons died within a minute
 * @param since when, as in ISO 8601
 * @param logFile the session's log, which says why
 */
public record StandIn(
    String mountpoint, String source, String number, int deaths, String since, String logFile) {
  /** Whether each field has a value that pmfs writes; a file may have any. */
  boolean isSound() {
    return RecordFields.isPath(mountpoint)
        && RecordFields.isPath(source)
        && RecordFields.isWord(number)
        && RecordFields.isWord(since)
        && RecordFields.isPath(logFile);
  }

  /** Whether it is this mount. */
  public boolean is(MountTable.Mount mount) {
    return number.equals(mount.number())
        && Path.of(mountpoint).equals(mount.mountpoint())
        && !mount.isPmfs()
        && mount.hasOption("ro");
  }

  /** What is the case, and what to do. */
  public String text() {
    return ("its daemon died %d times within a minute; the source itself is mounted here instead,"
            + " read-only, and no copies are used: see %s, then pmfs umount %s and mount again")
        .formatted(deaths, logFile, mountpoint);
  }
}
