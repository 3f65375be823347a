package io.pmfs.settings;

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
   * Between daemon and supervisor only: this daemon cannot take over the session now; try again
   * later (EX_UNAVAILABLE of sysexits.h). Any other nonzero status is a crash.
   */
  public static final int UNAVAILABLE = 69;

  /** Between daemon and supervisor only: start the installed version on the same session. */
  public static final int HANDED_OVER = 75;

  private ExitStatus() {}
}
