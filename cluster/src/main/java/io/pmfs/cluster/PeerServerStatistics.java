package io.pmfs.cluster;

import java.util.Map;

/**
 * What a server of peers has done since it started.
 *
 * @param requests that were answered or refused
 * @param bytes of content sent
 * @param refused how many requests and connections, by reason: a status of HTTP, or {@code
 *     connections}, {@code slow}, {@code stalled}
 * @param failed answers that broke off, or for which the source failed
 * @param active requests being answered
 * @param longestWaitMillis the longest that one waited for the first byte of its answer
 */
public record PeerServerStatistics(
    long requests,
    long bytes,
    Map<String, Long> refused,
    long failed,
    int active,
    long longestWaitMillis) {
  static final PeerServerStatistics NONE = new PeerServerStatistics(0, 0, Map.of(), 0, 0, 0);
}
