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
 * Peers that make wrong claims about the blocks of large files. Claims are hints, so this only
 * costs time, and the log names each such peer once. Thread-safe.
 */
final class WrongClaims {
  private static final Logger log = LoggerFactory.getLogger(WrongClaims.class);

  /** A copy may be evicted between claim and read, but not this often. */
  static final int MANY = 5;

  /** How many claimed blocks a peer has refused since it last sent one. */
  private final Map<UUID, Integer> refused = new ConcurrentHashMap<>();

  private final Set<UUID> named = ConcurrentHashMap.newKeySet();

  /** Checks a peer's answer about a file of this many blocks. */
  void said(Member peer, FileName path, HeldBlocks held, int count) {
    if (!held.isOf(count) && named.add(peer.id())) {
      log.warn("{} claims or offers blocks that {} does not have", peer, path);
    }
  }

  /** Records that a peer refused a block that it had claimed. */
  void refused(Member peer, String why) {
    if (refused.merge(peer.id(), 1, Integer::sum) >= MANY && named.add(peer.id())) {
      log.warn(
          "{} claims blocks of large files and refuses them, {} times in a row; lately: {}",
          peer,
          MANY,
          why);
    }
  }

  /** Records that a peer sent a block that it had claimed. */
  void gave(Member peer) {
    refused.remove(peer.id());
  }

  boolean isNamed(Member peer) {
    return named.contains(peer.id());
  }

  /** Forgets peers that are no longer members. */
  void keepOnly(Set<UUID> members) {
    refused.keySet().retainAll(members);
    named.retainAll(members);
  }
}
