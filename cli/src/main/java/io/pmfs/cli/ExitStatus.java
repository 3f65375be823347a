package io.pmfs.cli;

/** The exit statuses that job scripts rely on. */
final class ExitStatus {
  static final int DONE = 0;
  static final int FAILED = 1;

  /** Wrong usage or configuration; also a source, mount point or tier that cannot be used. */
  static final int USAGE = 2;

  static final int NOT_MOUNTED = 3;

  /** Done in part; also a mount whose tiers do not help its readers. */
  static final int PARTLY = 4;

  /** This machine cannot mount: the job should use the source path instead. */
  static final int CANNOT = 5;

  /** The dataset's copies and state are another mount's; give this one its own. */
  static final int IN_USE = 6;

  /**
   * Between daemon and supervisor only: this daemon cannot take over the session as things are, so
   * try again later (EX_UNAVAILABLE of sysexits.h). Another status that is not zero is a crash.
   */
  static final int UNAVAILABLE = 69;

  /** Between daemon and supervisor only: start the installed version on the same session. */
  static final int HANDED_OVER = 75;

  private ExitStatus() {}
}
