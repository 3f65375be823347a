package io.pmfs.cluster;

import java.time.Duration;

/**
 * How patient the members of a group are with each other; the same for all of them.
 *
 * @param silence after which a member is suspected, several heartbeats
 * @param heartbeat how often each says that it is there
 * @param verification how long a suspected member has to say that it is alive
 * @param join how long a node waits for others, and for an answer to its wish to join
 * @param merge how often parts of a group look for each other, at the most; 1 to 6 times that
 *     passes until they become one
 * @param look how often a member looks who is there, and how soon it says again who it is itself
 */
public record GroupTimings(
    Duration silence,
    Duration heartbeat,
    Duration verification,
    Duration join,
    Duration merge,
    Duration look) {
  public static final GroupTimings DEFAULTS =
      new GroupTimings(
          Duration.ofSeconds(3),
          Duration.ofSeconds(1),
          Duration.ofSeconds(1),
          Duration.ofSeconds(1),
          Duration.ofSeconds(1),
          Duration.ofSeconds(1));
}
