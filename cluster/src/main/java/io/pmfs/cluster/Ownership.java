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

  /**
   * Members own segments, not paths. As many for any number of members, or more paths than need be
   * would move when it changes; enough for 512 members to have 8 each.
   */
  private static final int SEGMENTS = 1 << 12;

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
    hash = SyncConsistentHashFactory.getInstance().create(replicas, SEGMENTS, addresses, null);
  }

  /** Who owns a path, best first; all members if there are fewer than replicas. */
  public List<Member> owners(FileName path) {
    return hash.locateOwnersForSegment(segment(path)).stream().map(this::member).toList();
  }

  private static int segment(FileName path) {
    return (int) Long.remainderUnsigned(PATH_HASH.hashBytes(path.bytes()).asLong(), SEGMENTS);
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
        ? (double) hash.getPrimarySegmentsForOwner(address).size() / SEGMENTS
        : 0;
  }
}
