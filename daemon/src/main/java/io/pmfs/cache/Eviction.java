package io.pmfs.cache;

import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Which copies go for a new one. All users have equal shares, and may use what others leave. Copies
 * of the user who is furthest above his share go first, the least recently used ones of his before
 * others. They go at once for another user; a user's own copies, and those of a user within his
 * share, go only if they were not asked for lately: programs read their files in turn, so the copy
 * of the longest unread file is the one they need next (docs/decisions/0004).
 *
 * <p>Equal copies that are kept once are one copy here: they go together, as only that makes room,
 * and count for one user.
 */
final class Eviction {
  private final Map<Integer, CacheUser> users;
  private final long shareBytes;
  private final int forUser;
  private final Instant lately;
  private final Map<Integer, Long> bytes = new HashMap<>();
  private final Map<Integer, Iterator<SharedCopy>> remaining = new HashMap<>();

  /** The least recently used copy of a user that may go, if it was looked for. */
  private final Map<Integer, SharedCopy> next = new HashMap<>();

  /**
   * @param forUser the user who needs room
   * @param lately copies used after this are in use
   */
  Eviction(Map<Integer, CacheUser> users, long capacityBytes, int forUser, Instant lately) {
    this.users = users;
    this.forUser = forUser;
    this.lately = lately;
    int sharing = 0;
    for (Map.Entry<Integer, CacheUser> entry : users.entrySet()) {
      CacheUser user = entry.getValue();
      bytes.put(entry.getKey(), user.bytes());
      remaining.put(entry.getKey(), user.copies().iterator());
      sharing += user.bytes() > 0 || entry.getKey() == forUser ? 1 : 0;
    }
    this.shareBytes = capacityBytes / Math.max(1, sharing);
  }

  /**
   * The copies that go.
   *
   * @param missingBytes how much room is missing; not above zero if none is
   * @param newBytes the size of the new copy
   * @return null if that is impossible
   */
  @Nullable List<SharedCopy> victims(long missingBytes, long newBytes) {
    bytes.merge(forUser, newBytes, Long::sum);
    List<SharedCopy> victims = new ArrayList<>();
    for (long missing = missingBytes; missing > 0; ) {
      SharedCopy victim = next();
      if (victim == null) {
        return null;
      }
      victims.add(victim);
      next.remove(victim.user);
      bytes.merge(victim.user, -victim.room(), Long::sum);
      missing -= victim.room();
    }
    return victims;
  }

  private @Nullable SharedCopy next() {
    SharedCopy best = null;
    for (int user : users.keySet()) {
      SharedCopy candidate = candidate(user);
      if (candidate != null && (best == null || bytesOf(user) > bytesOf(best.user))) {
        best = candidate;
      }
    }
    return best;
  }

  private @Nullable SharedCopy candidate(int user) {
    SharedCopy candidate = next.get(user);
    Iterator<SharedCopy> left = remaining.get(user);
    while (candidate == null && left != null && left.hasNext()) {
      SharedCopy copy = left.next();
      if (copy.isKept() && copy.holders == 0) {
        candidate = copy;
        next.put(user, copy);
      }
    }
    boolean isForOther = user != forUser && bytesOf(user) > shareBytes;
    return candidate != null && (isForOther || candidate.used.isBefore(lately)) ? candidate : null;
  }

  private long bytesOf(int user) {
    return bytes.getOrDefault(user, 0L);
  }
}
