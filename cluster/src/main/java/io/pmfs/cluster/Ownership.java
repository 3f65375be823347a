package io.pmfs.cluster;

import io.pmfs.metadata.FileName;
import java.util.List;

/** Stand-in until the real one comes. */
final class Ownership {
  private final View view;
  private final int replicas;

  Ownership(View view, int replicas) {
    this.view = view;
    this.replicas = replicas;
  }

  List<Member> owners(FileName path) {
    int first = Math.floorMod(path.hashCode(), view.members().size());
    return java.util.stream.IntStream.range(0, Math.min(replicas, view.members().size()))
        .mapToObj(i -> view.members().get((first + i) % view.members().size()))
        .toList();
  }
}
