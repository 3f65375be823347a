package io.pmfs.cluster.client;

import java.time.Duration;

/**
 * How long a client waits for a peer.
 *
 * @param connect for a new connection, or until one of the permitted connections is free
 * @param firstByte for the first byte after a request; a peer that is itself waiting reports that
 *     more often
 * @param stall between any two bytes
 * @param total for a whole answer
 */
public record PeerTimeouts(Duration connect, Duration firstByte, Duration stall, Duration total) {
  /** For peers in one cluster: 1 s, 3 s, 3 s and 60 s. */
  public static final PeerTimeouts DEFAULTS =
      new PeerTimeouts(
          Duration.ofSeconds(1),
          Duration.ofSeconds(3),
          Duration.ofSeconds(3),
          Duration.ofSeconds(60));

  /**
   * How long a reader waits for all peers together: long enough for one silent peer and the answer
   * of the next.
   */
  public Duration ofAReader() {
    return connect.plus(firstByte.compareTo(stall) > 0 ? firstByte : stall);
  }
}
