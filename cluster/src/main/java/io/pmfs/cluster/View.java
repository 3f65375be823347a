package io.pmfs.cluster;

import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * Who serves the dataset, as one member sees it.
 *
 * @param members by their ids, this node among them. One that was started again may be told of
 *     twice: the later instance counts
 */
public record View(List<Member> members) {
  public View {
    SortedMap<UUID, Member> latest = new TreeMap<>();
    for (Member member : members) {
      latest.merge(member.id(), member, (a, b) -> a.instance() > b.instance() ? a : b);
    }
    members = List.copyOf(latest.values());
  }

  /** The member of that id; null if it is not there. */
  @Nullable Member find(UUID id) {
    return members.stream().filter(member -> member.id().equals(id)).findFirst().orElse(null);
  }
}
