package io.pmfs.cluster.members;

import java.time.Duration;

/**
 * How long the members of a group wait for each other; the same for all members.
 *
 * @param silence how long a member is silent before it is suspected: several heartbeats
 * @param heartbeat how often each member sends a heartbeat
 * @param verification how long a suspected member has to prove that it is alive
 * @param join how long a node waits to find others, and for the answer to its request to join
 * @param merge the shortest interval at which parts of a group look for each other; they merge
 *     after 1 to 6 times that
 * @param look how often a member looks for others, and how soon it repeats its own announcement
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
