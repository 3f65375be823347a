package io.pmfs.cache;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * The copies of one user: made for him, and open in his mounts. Guarded by {@link SharedCopies}.
 */
final class CacheUser {
  /** How often this user's mounts say that they have a copy open. */
  private final Map<SharedCopy, Integer> held = new HashMap<>();

  /** What this user's mounts gave back, and what somebody has open nevertheless. */
  private final Set<SharedCopy> suspected = new HashSet<>();

  private Space used = Space.NONE;
  private long openBytes;
  private long leastRecent;

  /** What the copies take that were made for this user. */
  Space used() {
    return used;
  }

  void add(Space more) {
    used = used.plus(more);
  }

  void remove(Space less) {
    used = used.minus(less);
  }

  /** No copy that was made for this user was last used before this. */
  long leastRecent() {
    return leastRecent;
  }

  void leastRecent(long time) {
    leastRecent = time;
  }

  void hold(SharedCopy copy) {
    charge(copy);
    held.merge(copy, 1, Integer::sum);
  }

  void release(SharedCopy copy) {
    if (held.merge(copy, -1, Integer::sum) == 0) {
      held.remove(copy);
      discharge(copy);
    }
  }

  /** Somebody has a copy open that all gave back; it may be this user. */
  void suspect(SharedCopy copy) {
    charge(copy);
    suspected.add(copy);
  }

  /** Nobody has it open any more. */
  void clear(SharedCopy copy) {
    if (suspected.remove(copy)) {
      discharge(copy);
    }
  }

  /** Whether this user's mounts may have a copy open. */
  boolean mayHaveOpen(SharedCopy copy) {
    return held.containsKey(copy) || suspected.contains(copy);
  }

  private void charge(SharedCopy copy) {
    openBytes += mayHaveOpen(copy) ? 0 : copy.key.size();
  }

  private void discharge(SharedCopy copy) {
    openBytes -= mayHaveOpen(copy) ? 0 : copy.key.size();
  }

  /** The bytes of the copies that this user's mounts may have open, whoever they were made for. */
  long openBytes() {
    return openBytes;
  }

  /** How many these are; those that others use, too, may count twice. */
  int openCopies() {
    return held.size() + suspected.size();
  }

  CacheReport.OfUser report() {
    return new CacheReport.OfUser(used.bytes(), used.files(), openBytes, suspected.size());
  }

  boolean isIdle() {
    return used.equals(Space.NONE) && held.isEmpty() && suspected.isEmpty();
  }
}
