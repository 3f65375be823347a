package io.pmfs.cluster.members;

import java.util.UUID;

/**
 * A node that serves the dataset to its peers.
 *
 * @param id stored with its state: the same after a restart
 * @param instance a number that is larger at each start; a request is signed for one instance only
 * @param name the host's name, for people
 * @param host the literal address where it answers peers
 * @param port the port where it answers peers
 */
public record Member(UUID id, long instance, String name, String host, int port) {
  @Override
  public String toString() {
    return name + " (" + host + ":" + port + ")";
  }
}
