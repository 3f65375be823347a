package io.pmfs.cluster;

import java.util.Comparator;
import java.util.List;

/**
 * Who serves the dataset, as one member sees it.
 *
 * @param members by their ids, this node among them
 */
public record View(List<Member> members) {
  public View {
    members = members.stream().sorted(Comparator.comparing(Member::id)).toList();
  }
}
