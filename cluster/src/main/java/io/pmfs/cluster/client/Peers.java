package io.pmfs.cluster.client;

import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.PeerException;
import java.util.List;

/** The other nodes of a cluster, which answer requests about themselves. Thread-safe. */
public interface Peers {
  /** The other nodes that are known to be alive. */
  List<Member> others();

  /**
   * Sends a request to a peer's {@code NodeRequests}; ends within the timeouts for peers.
   *
   * @param path below /v1/, with its query
   * @param body JSON of at most 1 MiB; empty for none
   * @return JSON
   */
  String call(Member peer, String method, String path, String body) throws PeerException;
}
