package io.pmfs.cli;

/** What the control socket can ask of the daemon. Called by several threads. */
interface ControlRequests {
  StatusReport status();

  KeptTasks tasks();

  /** Hands the mount over to the installed version; the daemon ends soon after. */
  void upgrade() throws MountFailure;

  /** Unmounts, and drops all copies if {@code purge}; busy gives a busy failure. */
  void unmount(boolean lazy, boolean purge) throws MountFailure;
}
