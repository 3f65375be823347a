package io.pmfs.cluster;

import java.util.Comparator;
import java.util.List;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * Who serves the dataset, as one member sees it.
 *
 * @param members by their ids, this node among them
 */
public record View(List<Member> members) {
  public View {
    members = members.stream().sorted(Comparator.comparing(Member::id)).toList();
  }

  /** The member of that id; null if it is not there. */
  @Nullable Member find(UUID id) {
    return members.stream().filter(member -> member.id().equals(id)).findFirst().orElse(null);
  }
}
