package io.pmfs.cluster.server;

import java.util.Map;

/**
 * What a {@link PeerServer} has done since it started.
 *
 * @param requests how many were answered or refused
 * @param bytes of content sent
 * @param refused how many requests and connections were refused, by reason: an HTTP status, or
 *     {@code connections}, {@code slow}, {@code stalled}
 * @param failed answers that broke off, or for which the source failed
 * @param active requests that are being answered
 * @param longestWaitMillis the longest wait of a request for the first byte of its answer
 */
public record PeerServerStatistics(
    long requests,
    long bytes,
    Map<String, Long> refused,
    long failed,
    int active,
    long longestWaitMillis) {
  public static final PeerServerStatistics NONE = new PeerServerStatistics(0, 0, Map.of(), 0, 0, 0);
}
