package io.pmfs.cluster;

import com.google.common.hash.HashFunction;
import com.google.common.hash.Hashing;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.members.View;
import io.pmfs.metadata.FileName;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.IntStream;
import org.infinispan.distribution.ch.impl.DefaultConsistentHash;
import org.infinispan.distribution.ch.impl.SyncConsistentHashFactory;
import org.infinispan.remoting.transport.Address;

/**
 * Which members own which paths: a pure function of the members' ids and the number of replicas, so
 * that members with the same view agree without asking each other. Immutable.
 */
public final class Ownership {
  private static final HashFunction PATH_HASH = Hashing.farmHashFingerprint64();

  /**
   * Members own segments, not paths. Their number is the same for any number of members; otherwise
   * more paths than necessary would move when a member joins or leaves. 512 members have 8 segments
   * each.
   */
  private static final int SEGMENTS = 1 << 12;

  private final DefaultConsistentHash hash;
  private final Map<Address, Member> members = new HashMap<>();

  /** The owners of each segment, cached because each read looks them up several times. */
  private final List<List<Member>> owners;

  /**
   * @param replicas how many members own a path, at least 1
   */
  public Ownership(View view, int replicas) {
    if (replicas < 1) {
      throw new IllegalArgumentException(replicas + " replicas: at least one is needed");
    }
    if (view.members().isEmpty()) {
      throw new IllegalArgumentException(
          "a view must have a member: otherwise no path has an owner");
    }
    for (Member member : view.members()) {
      members.put(Address.fromNodeUUID(member.id()), member);
    }
    List<Address> addresses = members.keySet().stream().sorted().toList();
    hash = SyncConsistentHashFactory.getInstance().create(replicas, SEGMENTS, addresses, null);
    owners = IntStream.range(0, SEGMENTS).mapToObj(this::ownersOf).toList();
  }

  private List<Member> ownersOf(int segment) {
    return hash.locateOwnersForSegment(segment).stream().map(this::member).toList();
  }

  /** The owners of a path, best first; all members if there are fewer than replicas. */
  public List<Member> owners(FileName path) {
    return owners.get(segment(path));
  }

  private static int segment(FileName path) {
    return (int) Long.remainderUnsigned(PATH_HASH.hashBytes(path.bytes()).asLong(), SEGMENTS);
  }

  private Member member(Address address) {
    Member member = members.get(address);
    if (member == null) {
      throw new IllegalStateException(address + " owns a segment but is not a member");
    }
    return member;
  }

  /** The fraction of all paths whose first owner is the given node; 0 if it is not a member. */
  public double share(UUID memberId) {
    Address address = Address.fromNodeUUID(memberId);
    return members.containsKey(address)
        ? (double) hash.getPrimarySegmentsForOwner(address).size() / SEGMENTS
        : 0;
  }
}
