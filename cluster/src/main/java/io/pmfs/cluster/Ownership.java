package io.pmfs.cluster;

import com.google.common.hash.HashFunction;
import com.google.common.hash.Hashing;
import io.pmfs.metadata.FileName;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.infinispan.distribution.ch.impl.DefaultConsistentHash;
import org.infinispan.distribution.ch.impl.SyncConsistentHashFactory;
import org.infinispan.remoting.transport.Address;

/**
 * Who owns which paths: a pure function of the members' ids and the number of replicas, so that
 * members with the same view agree without asking. Immutable.
 */
public final class Ownership {
  private static final HashFunction PATH_HASH = Hashing.farmHashFingerprint64();

  /** Members own segments, not paths: more of them share more evenly, and take longer to deal. */
  private static final int MIN_SEGMENTS = 1 << 10;

  private static final int MAX_SEGMENTS = 1 << 14;
  private static final int SEGMENTS_PER_MEMBER = 32;

  private final DefaultConsistentHash hash;
  private final Map<Address, Member> members = new HashMap<>();

  /**
   * @param replicas how many members own a path, at least 1
   */
  public Ownership(View view, int replicas) {
    if (replicas < 1) {
      throw new IllegalArgumentException(replicas + " replicas: at least one is needed");
    }
    if (view.members().isEmpty()) {
      throw new IllegalArgumentException("a view without members: nobody can own anything");
    }
    for (Member member : view.members()) {
      members.put(Address.fromNodeUUID(member.id()), member);
    }
    List<Address> addresses = members.keySet().stream().sorted().toList();
    hash =
        SyncConsistentHashFactory.getInstance()
            .create(replicas, segments(addresses.size()), addresses, null);
  }

  /** A power of two, so that twice as many segments are each half of an old one. */
  private static int segments(int members) {
    int wanted = Math.max(MIN_SEGMENTS, members * SEGMENTS_PER_MEMBER);
    return Math.min(MAX_SEGMENTS, Integer.highestOneBit(2 * wanted - 1));
  }

  /** Who owns a path, best first; all members if there are fewer than replicas. */
  public List<Member> owners(FileName path) {
    return hash.locateOwnersForSegment(segment(path)).stream().map(this::member).toList();
  }

  private int segment(FileName path) {
    long hashed = PATH_HASH.hashBytes(path.bytes()).asLong();
    // The number of segments is a power of two: these are the hash's highest bits.
    return (int) (hashed >>> (Long.SIZE - Integer.numberOfTrailingZeros(hash.getNumSegments())));
  }

  private Member member(Address address) {
    Member member = members.get(address);
    if (member == null) {
      throw new IllegalStateException(address + " owns a segment and is not a member");
    }
    return member;
  }

  /** The fraction of all paths of which a member is the first owner; 0 for a stranger. */
  public double share(UUID memberId) {
    Address address = Address.fromNodeUUID(memberId);
    return members.containsKey(address)
        ? (double) hash.getPrimarySegmentsForOwner(address).size() / hash.getNumSegments()
        : 0;
  }
}
