package io.pmfs.mounts;

import io.pmfs.machine.MountTable;
import java.nio.file.Path;

/**
 * The source itself, mounted read-only in place of a session whose daemons kept dying:
 * docs/decisions/0059. Whether it is still mounted is known only from the mount table.
 *
 * @param number the mount id in mountinfo, which the kernel may reuse
 * @param deaths how many daemons died within a minute
 * @param since the time of mounting, in ISO 8601
 * @param logFile the session's log, with the cause
 */
public record StandIn(
    String mountpoint, String source, String number, int deaths, String since, String logFile) {
  /** Whether every field is valid; a file may contain anything. */
  boolean isSound() {
    return RecordFields.isPath(mountpoint)
        && RecordFields.isPath(source)
        && RecordFields.isWord(number)
        && RecordFields.isWord(since)
        && RecordFields.isPath(logFile);
  }

  /** Whether a mount is this one. */
  public boolean is(MountTable.Mount mount) {
    return number.equals(mount.number())
        && Path.of(mountpoint).equals(mount.mountpoint())
        && !mount.isPmfs()
        && mount.hasOption("ro");
  }

  /** The state and a remedy, for the user. */
  public String text() {
    return ("its daemon died %d times within a minute; the source itself is mounted here instead,"
            + " read-only, and no copies are used: see %s, then pmfs umount %s and mount again")
        .formatted(deaths, logFile, mountpoint);
  }
}
