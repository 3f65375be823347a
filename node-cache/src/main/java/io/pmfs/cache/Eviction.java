package io.pmfs.cache;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Which copies go for a new one. All users have equal shares of the bytes and of the files, and may
 * use what others leave; what a user has most of counts. Copies of the user who is furthest above
 * his share go first, the least recently used ones of his before others. They go at once for
 * another user; a user's own copies, and those of a user within his share, go only if they were not
 * asked for lately: programs read their files in turn, so the copy of the longest unread file is
 * the one they need next (docs/decisions/0004). Those that nobody is known for go first.
 */
final class Eviction {
  /** More go in several steps, between which others get on. */
  private static final int MOST = 512;

  private final Space capacity;
  private final int forUser;
  private final long lately;
  private final Candidates candidates;
  private final double share;
  private final Map<Integer, Space> used = new HashMap<>();

  /** The least recently used copy of a user that may go, if it was looked for. */
  private final Map<Integer, SharedCopy> next = new HashMap<>();

  /** The copies that may go. */
  interface Candidates {
    /** The next copy of a user, the least recently used one first; null if there are no more. */
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
   * The copies that go; perhaps only some of them.
   *
   * @param missing how much room is missing; not above zero where none is
   * @param needed what the new copy takes
   * @return null if there is no way to make room
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

  /** How much of the capacity a user has; everything if it is nobody's. */
  private double above(int user) {
    return user == CopyKey.NOBODY
        ? Double.MAX_VALUE
        : used.getOrDefault(user, Space.NONE).partOf(capacity);
  }
}
