package io.pmfs.cluster;

import java.util.List;

/** The other nodes of a cluster, to be asked of themselves. Safe for use by many threads. */
public interface Peers {
  /** Those that are known to be alive. */
  List<Member> others();

  /**
   * Asks a peer's {@link NodeRequests}; ends within the time limits of peers.
   *
   * @param path below /v1/, with its query
   * @param body JSON of at most 1 MiB; empty for none
   * @return JSON
   */
  String call(Member peer, String method, String path, String body) throws PeerException;
}
