package io.pmfs.metadata;

import java.util.ArrayList;
import java.util.List;

/** Changes that are applied together, in order. */
final class Batch {
  private final List<Change> changes = new ArrayList<>();

  List<Change> changes() {
    return changes;
  }

  void add(Change change) {
    changes.add(change);
  }

  void put(Family family, byte[] key, byte[] value) {
    changes.add(Change.put(family, key, value));
  }

  void delete(Family family, byte[] key) {
    changes.add(Change.delete(family, key));
  }

  /** Deletes every key of a grouped family that starts with this number. */
  void deleteGroup(Family family, long number) {
    changes.add(Change.deleteGroup(family, Keys.number(number)));
  }
}
