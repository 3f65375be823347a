package io.pmfs.cluster;

import java.util.UUID;

/**
 * A node that serves the dataset to its peers.
 *
 * @param id kept with its state: the same after a restart
 * @param instance another at each start, and larger; a request is signed for this instance only
 * @param name for people: the host's
 * @param host the address where it answers peers, a literal one
 * @param port where it answers them
 */
public record Member(UUID id, long instance, String name, String host, int port) {
  /** For messages. */
  @Override
  public String toString() {
    return name + " (" + host + ":" + port + ")";
  }
}
