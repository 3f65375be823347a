package io.pmfs.table;

import com.google.common.primitives.Longs;
import java.util.ArrayList;
import java.util.List;

/** Changes that are applied together, in order. */
public final class Batch {
  private final List<Change> changes = new ArrayList<>();

  public List<Change> changes() {
    return changes;
  }

  public void add(Change change) {
    changes.add(change);
  }

  public void put(Family family, byte[] key, byte[] value) {
    changes.add(Change.put(family, key, value));
  }

  public void delete(Family family, byte[] key) {
    changes.add(Change.delete(family, key));
  }

  /** Deletes every key of a grouped family that starts with this number. */
  public void deleteGroup(Family family, long number) {
    changes.add(Change.deleteGroup(family, Longs.toByteArray(number)));
  }
}
