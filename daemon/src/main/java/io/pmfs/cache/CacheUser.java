package io.pmfs.cache;

import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The copies of one user: made for him, and held by his mounts. Guarded by {@link SharedCopies}.
 */
final class CacheUser {
  /** Made for this user; least recently used first. */
  private final Map<SharedCopy, Boolean> copies = new LinkedHashMap<>(16, 0.75f, true);

  /** How often this user's mounts hold a copy. */
  private final Map<SharedCopy, Integer> held = new HashMap<>();

  private long bytes;
  private long heldBytes;

  void add(SharedCopy copy) {
    copies.put(copy, true);
    bytes += copy.room();
  }

  void remove(SharedCopy copy) {
    if (copies.remove(copy) != null) {
      bytes -= copy.room();
    }
  }

  /** Makes it the most recently used one. */
  void touch(SharedCopy copy) {
    copies.get(copy);
  }

  void hold(SharedCopy copy) {
    if (held.merge(copy, 1, Integer::sum) == 1) {
      heldBytes += copy.room();
    }
  }

  void release(SharedCopy copy) {
    if (held.merge(copy, -1, Integer::sum) == 0) {
      held.remove(copy);
      heldBytes -= copy.room();
    }
  }

  /** Least recently used first. */
  Collection<SharedCopy> copies() {
    return copies.keySet();
  }

  /** The room of the copies that were made for this user. */
  long bytes() {
    return bytes;
  }

  /** The room of the copies that this user's mounts may have open, whoever they were made for. */
  long heldBytes() {
    return heldBytes;
  }
}
