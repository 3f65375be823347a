package io.pmfs.daemon.metrics;

import io.pmfs.daemon.report.StatusReport;
import org.jspecify.annotations.Nullable;

/**
 * The present values on the web page: the status, and a heading about the daemon.
 *
 * @param timeMillis when, by the daemon's clock
 * @param version as {@code pmfs --version} prints it
 * @param sinceMillis when the daemon started and began to count
 * @param hasTakenOver whether the mount is older than the daemon
 * @param verdict the words of {@code pmfs status}; null if the status has none
 */
public record PageReport(
    long timeMillis,
    String host,
    String version,
    long sinceMillis,
    boolean hasTakenOver,
    @Nullable String verdict,
    StatusReport status) {

  /** Facts about the daemon. */
  public record Heading(String host, String version, long sinceMillis, boolean hasTakenOver) {
    /** The page's values at one moment. */
    public PageReport with(StatusReport status, long timeMillis) {
      return new PageReport(
          timeMillis, host, version, sinceMillis, hasTakenOver, status.verdict(), status);
    }
  }
}
