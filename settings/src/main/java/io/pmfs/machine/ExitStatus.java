package io.pmfs.machine;

import java.util.List;

/** The exit statuses that job scripts rely on. */
public final class ExitStatus {
  public static final int DONE = 0;
  public static final int FAILED = 1;

  /** Wrong usage or configuration; also a source, mount point or tier that cannot be used. */
  public static final int USAGE = 2;

  public static final int NOT_MOUNTED = 3;

  /** Done in part; also a mount whose tiers do not help its readers. */
  public static final int PARTLY = 4;

  /** This machine cannot mount: the job should use the source path instead. */
  public static final int CANNOT = 5;

  /** Another mount uses the dataset's copies and state; give this mount its own. */
  public static final int IN_USE = 6;

  /**
   * Between daemon and supervisor only: this daemon cannot take over the session now; retry later
   * (EX_UNAVAILABLE of sysexits.h). Any other nonzero status is a crash.
   */
  public static final int UNAVAILABLE = 69;

  /** Between daemon and supervisor only: start the installed version on the same session. */
  public static final int HANDED_OVER = 75;

  /**
   * What a status means. Help, manual pages and the tables in docs derive from it.
   *
   * @param status the number, or a sum such as 128+N
   * @param summary for the help: starts in lower case and ends without a full stop
   * @param details more, for manuals; may be empty
   */
  public record Meaning(String status, String summary, String details) {
    private Meaning(int status, String summary, String details) {
      this(Integer.toString(status), summary, details);
    }

    public String text() {
      return details.isEmpty() ? summary : summary + "; " + details;
    }
  }

  /** The statuses of all commands except {@code pmfs run}. */
  public static final List<Meaning> MEANINGS =
      List.of(
          new Meaning(DONE, "done", ""),
          new Meaning(FAILED, "failed", ""),
          new Meaning(
              USAGE,
              "wrong usage or configuration",
              "also a source, mount point or tier that does not exist or cannot be used"),
          new Meaning(
              NOT_MOUNTED,
              "not mounted",
              "from commands that need a mount: umount, drain, status, stage, evict, verify,"
                  + " upgrade, profile"),
          new Meaning(
              PARTLY,
              "done in part",
              "not all files could be staged, or some copies were bad; from status: all reads go to"
                  + " the source, the state cannot be recorded, or nodes of a cluster are missing;"
                  + " of a writable mount: not everything is at the source"),
          new Meaning(
              CANNOT,
              "this machine cannot mount",
              "no /dev/fuse or no permission: the job should use the source path instead"),
          new Meaning(
              IN_USE,
              "another mount uses this dataset's copies and state",
              "from mount: name another --tier and --state-dir"));

  /** Added to the status of pmfs if {@code pmfs run} ends with that and not with its command's. */
  private static final int RUN = 120;

  /** The statuses of {@code pmfs run}; scripts/pmfs-run. */
  public static final List<Meaning> MEANINGS_OF_RUN =
      List.of(
          new Meaning("N", "COMMAND ended with status N", ""),
          new Meaning(
              RUN + FAILED,
              "pmfs failed before it started COMMAND, or the mount was lost while COMMAND ran, and"
                  + " COMMAND ended with 0",
              ""),
          new Meaning(RUN + USAGE, "wrong usage or configuration, before pmfs started COMMAND", ""),
          new Meaning(
              RUN + PARTLY,
              "COMMAND ended with 0, but not all that it wrote with --writable is at the source",
              "the rest is kept in the state"),
          new Meaning(
              RUN + CANNOT,
              "this machine cannot mount",
              "--or-source runs COMMAND on the source instead"),
          new Meaning(126, "COMMAND is not executable", ""),
          new Meaning(127, "COMMAND is not found", ""),
          new Meaning("128+N", "signal N killed COMMAND, or stopped pmfs before it", ""));

  private ExitStatus() {}
}
