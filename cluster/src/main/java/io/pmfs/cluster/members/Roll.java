package io.pmfs.cluster.members;

import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The missing nodes of a cluster, as one of its nodes sees it.
 *
 * @param expected how many nodes are present or missing
 * @param missing in the order of their names
 */
public record Roll(int expected, List<Absence> missing) {

  public Roll {
    missing = List.copyOf(missing);
  }

  /**
   * A missing node.
   *
   * @param node its host as it is listed, else its name
   * @param address where it answered its peers; null if it was never present
   * @param since when it was lost; if it was never present, when this node's mount began
   */
  public record Absence(String node, @Nullable String address, Instant since, boolean wasHere) {}
}
