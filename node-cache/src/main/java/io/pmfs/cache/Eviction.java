package io.pmfs.cache;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Chooses the copies to evict for a new one. All users have equal shares of the bytes and of the
 * files, and may use what others leave; the larger of both fractions counts. Copies without a known
 * user are evicted first, then those of the user furthest above the share, least recently used
 * first. For another user they are evicted at once. A user's own copies, and those of a user within
 * the share, are evicted only if not used recently: programs read their files in turn, so the
 * longest unread file is the next to be read (docs/decisions/0004).
 */
final class Eviction {
  /** At most so many are chosen at a time, so that other threads can take the lock between. */
  private static final int MOST = 512;

  private final Space capacity;
  private final int forUser;
  private final long lately;
  private final Candidates candidates;
  private final double share;
  private final Map<Integer, Space> used = new HashMap<>();

  /** Each user's next candidate, if already looked up. */
  private final Map<Integer, SharedCopy> next = new HashMap<>();

  /** Copies that may be evicted. */
  interface Candidates {
    /** The next copy of a user, least recently used first; null at the end. */
    @Nullable SharedCopy next(int user);
  }

  /**
   * @param forUser the user who needs room
   * @param lately copies used after this are in use
   */
  Eviction(
      Map<Integer, CacheUser> users,
      Space capacity,
      int forUser,
      long lately,
      Candidates candidates) {
    this.capacity = capacity;
    this.forUser = forUser;
    this.lately = lately;
    this.candidates = candidates;
    users.forEach((user, his) -> used.put(user, his.used()));
    used.putIfAbsent(forUser, Space.NONE);
    long sharing =
        used.entrySet().stream()
            .filter(entry -> entry.getKey() != CopyKey.NOBODY)
            .filter(entry -> entry.getKey() == forUser || entry.getValue().files() > 0)
            .count();
    this.share = 1.0 / Math.max(1, sharing);
  }

  /**
   * The copies to evict, or the first {@link #MOST} of them.
   *
   * @param missing how much to free; zero or less if nothing
   * @param needed the size of the new copy
   * @return null if not enough can be freed
   */
  @Nullable List<SharedCopy> victims(Space missing, Space needed) {
    used.merge(forUser, needed, Space::plus);
    List<SharedCopy> victims = new ArrayList<>();
    for (Space left = missing; !left.fitsIn(Space.NONE) && victims.size() < MOST; ) {
      SharedCopy victim = next();
      if (victim == null) {
        return null;
      }
      victims.add(victim);
      next.remove(victim.user);
      used.computeIfPresent(victim.user, (user, his) -> his.minus(victim.space));
      left = left.minus(victim.space);
    }
    return victims;
  }

  private @Nullable SharedCopy next() {
    List<Integer> furthestFirst = new ArrayList<>(used.keySet());
    furthestFirst.sort(Comparator.comparingDouble(this::above).reversed());
    for (int user : furthestFirst) {
      SharedCopy candidate = next.computeIfAbsent(user, candidates::next);
      if (candidate != null && mayGo(candidate)) {
        return candidate;
      }
    }
    return null;
  }

  private boolean mayGo(SharedCopy candidate) {
    CopyIndex.Entry entry = candidate.entry;
    boolean isForOther = candidate.user != forUser && above(candidate.user) > share;
    return isForOther || (entry != null && entry.used() < lately);
  }

  /** The fraction of the capacity that a user has; copies of unknown users exceed any share. */
  private double above(int user) {
    return user == CopyKey.NOBODY
        ? Double.MAX_VALUE
        : used.getOrDefault(user, Space.NONE).partOf(capacity);
  }
}
