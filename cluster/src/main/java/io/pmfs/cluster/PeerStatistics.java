package io.pmfs.cluster;

/**
 * What a client has asked a peer since it started.
 *
 * @param requests files, directories and names asked for
 * @param bytes of content that came
 * @param failures of the requests; that a peer refused is none
 * @param medianMillis how long half of the requests that were answered took at most
 * @param slowestPercentMillis how long 99 of 100 of them took at most
 */
public record PeerStatistics(
    long requests, long bytes, long failures, double medianMillis, double slowestPercentMillis) {
  /** Of a peer that was never asked. */
  public static final PeerStatistics NONE = new PeerStatistics(0, 0, 0, 0, 0);
}
