package io.pmfs.cluster;

import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.HeldBlocks;
import io.pmfs.metadata.FileName;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Peers that say what is wrong about the blocks of large files. That does no harm, since all of it
 * are hints, but costs time, so the log names each of them once. Safe for use by many threads.
 */
final class WrongClaims {
  private static final Logger log = LoggerFactory.getLogger(WrongClaims.class);

  /**
   * A peer may refuse what it claimed: its copy was evicted in between. So often it is no chance.
   */
  static final int MANY = 5;

  /** Blocks that a peer claimed and refused, since it last gave one. */
  private final Map<UUID, Integer> refused = new ConcurrentHashMap<>();

  private final Set<UUID> named = ConcurrentHashMap.newKeySet();

  /** A peer answered a question about a file of so many blocks. */
  void said(Member peer, FileName path, HeldBlocks held, int count) {
    if (!held.isOf(count) && named.add(peer.id())) {
      log.warn("{} claims or offers blocks that {} does not have", peer, path);
    }
  }

  /** A peer refused a block that it had claimed. */
  void refused(Member peer, String why) {
    if (refused.merge(peer.id(), 1, Integer::sum) >= MANY && named.add(peer.id())) {
      log.warn(
          "{} claims blocks of large files and does not give them, {} times in a row; lately: {}",
          peer,
          MANY,
          why);
    }
  }

  /** A peer gave a block that it had claimed. */
  void gave(Member peer) {
    refused.remove(peer.id());
  }

  /** Whether the log has named a peer. */
  boolean isNamed(Member peer) {
    return named.contains(peer.id());
  }

  /** Forgets peers that are no longer members. */
  void keepOnly(Set<UUID> members) {
    refused.keySet().retainAll(members);
    named.retainAll(members);
  }
}
