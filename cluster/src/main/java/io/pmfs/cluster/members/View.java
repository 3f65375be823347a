package io.pmfs.cluster.members;

import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * The members that serve the dataset, as one member sees them.
 *
 * @param members ordered by id, including this node. A restarted member may be passed twice: the
 *     later instance counts
 */
public record View(List<Member> members) {
  public View {
    SortedMap<UUID, Member> latest = new TreeMap<>();
    for (Member member : members) {
      latest.merge(member.id(), member, (a, b) -> a.instance() > b.instance() ? a : b);
    }
    members = List.copyOf(latest.values());
  }

  /** The member with that id; null if there is none. */
  public @Nullable Member find(UUID id) {
    return members.stream().filter(member -> member.id().equals(id)).findFirst().orElse(null);
  }
}
