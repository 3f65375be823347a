package io.pmfs.cluster.client;

/**
 * What a client has asked a peer since it started.
 *
 * @param requests files, directories and names asked for
 * @param bytes of content received
 * @param failures requests that failed; a refusal is not a failure
 * @param medianMillis the median time of the requests that were answered
 * @param slowestPercentMillis the 99th percentile of that time
 */
public record PeerStatistics(
    long requests, long bytes, long failures, double medianMillis, double slowestPercentMillis) {
  /** The statistics of a peer that was never asked. */
  public static final PeerStatistics NONE = new PeerStatistics(0, 0, 0, 0, 0);
}
