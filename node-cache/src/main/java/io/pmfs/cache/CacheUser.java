package io.pmfs.cache;

import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * Accounts for the copies made for one user and those open in the user's mounts. Guarded by {@link
 * SharedCopies}.
 */
final class CacheUser {
  /** How many handles of each copy this user's mounts have. */
  private final Map<SharedCopy, Integer> held = new HashMap<>();

  /** Copies that this user's mounts have released but that are still open somewhere. */
  private final Set<SharedCopy> suspected = new HashSet<>();

  private Space used = Space.NONE;
  private long openBytes;
  private long leastRecent;

  /** Space of the copies made for this user. */
  Space used() {
    return used;
  }

  void add(Space more) {
    used = used.plus(more);
  }

  void remove(Space less) {
    used = used.minus(less);
  }

  /** All copies made for this user were last used at this time or later. */
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

  /** A copy is still open although all mounts released it; this user may have it open. */
  void suspect(SharedCopy copy) {
    charge(copy);
    suspected.add(copy);
  }

  /** The copy is no longer open. */
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

  /**
   * Size of the copies that this user's mounts may have open, including those made for other users.
   */
  long openBytes() {
    return openBytes;
  }

  /**
   * How many copies this user's mounts may have open; one that is both held and suspected counts
   * twice.
   */
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
