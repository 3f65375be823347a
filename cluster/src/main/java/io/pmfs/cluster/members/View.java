package io.pmfs.cluster.members;

import com.google.common.collect.Lists;
import java.util.Collections;
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
    int at = Collections.binarySearch(Lists.transform(members, Member::id), id);
    return at < 0 ? null : members.get(at);
  }
}
