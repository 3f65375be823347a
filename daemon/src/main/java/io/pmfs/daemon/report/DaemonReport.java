package io.pmfs.daemon.report;

import io.pmfs.posix.Troubles;
import org.jspecify.annotations.Nullable;

/** The process that serves a mount. */
public record DaemonReport(
    @Figure("the user whose process the daemon is") String user,
    @Figure("the daemon's process; 0 if there is none") long pid,
    @Figure("how long the daemon has run and counted") long uptimeSeconds,
    @Figure("where the daemon logs") @Nullable String logFile,
    @Figure("the URL of `--metrics`, with the actual port") @Nullable String metrics,
    @Nullable Memory memory,
    @Figure(
            "a thread of the daemon that has failed in the last half minute and keeps trying, and"
                + " why; `pmfs status` then ends with 4. Null if there is none")
        @Nullable String threadFailure) {

  /** A dead daemon, with only its log. */
  static DaemonReport gone(String user, String logFile) {
    return new DaemonReport(user, 0, 0, logFile, null, null, null);
  }

  /** This process, without what only the daemon knows. */
  public static DaemonReport ofThisProcess() {
    return new DaemonReport(
        "", ProcessHandle.current().pid(), 0, null, null, Memory.now(), Troubles.recent());
  }

  /** Adds what only the daemon knows. */
  public DaemonReport with(
      String daemonUser, long daemonUptimeSeconds, String log, @Nullable String metricsUrl) {
    return new DaemonReport(
        daemonUser, pid, daemonUptimeSeconds, log, metricsUrl, memory, threadFailure);
  }

  public record Memory(
      @Figure(
              value = "memory of the daemon, as the kernel counts it",
              metric = "pmfs_resident_memory_bytes")
          long residentBytes,
      @Figure("of that, Java's heap") long heapUsedBytes,
      @Figure("the most that the heap may take") long heapMaxBytes) {
    public static Memory now() {
      Runtime runtime = Runtime.getRuntime();
      return new Memory(
          ProcessMemory.residentBytes(),
          runtime.totalMemory() - runtime.freeMemory(),
          runtime.maxMemory());
    }
  }
}
