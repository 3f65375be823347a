package io.pmfs.cache;

import java.util.Comparator;
import java.util.Map;
import java.util.TreeMap;

/** The space of all copies and of each user's. Guarded by {@link SharedCopies}. */
final class CopyRoom {
  /** A limit, because a report is one message. */
  private static final int MOST_REPORTED = 200;

  private final Space capacity;
  private final Map<Integer, CacheUser> users = new TreeMap<>();
  private Space used = Space.NONE;
  private Space going = Space.NONE;

  CopyRoom(Space capacity) {
    this.capacity = capacity;
  }

  Space capacity() {
    return capacity;
  }

  Space used() {
    return used;
  }

  CacheUser user(int uid) {
    return users.computeIfAbsent(uid, number -> new CacheUser());
  }

  Map<Integer, CacheUser> users() {
    return users;
  }

  /** Charges space to a user. */
  void add(int user, Space more) {
    user(user).add(more);
    used = used.plus(more);
  }

  void remove(int user, Space less) {
    user(user).remove(less);
    used = used.minus(less);
  }

  /** A copy's file will be removed, and uses space until then. */
  void goes(SharedCopy copy) {
    going = going.plus(copy.space);
  }

  void isGone(SharedCopy copy) {
    going = going.minus(copy.space);
    remove(copy.user, copy.space);
  }

  boolean isAnythingGoing() {
    return !going.equals(Space.NONE);
  }

  boolean hasRoomFor(Space more) {
    return used.plus(more).fitsIn(capacity);
  }

  /** How much more must be evicted to fit {@code more}; zero or less if nothing. */
  Space missingFor(Space more) {
    return used.minus(going).plus(more).minus(capacity);
  }

  void forgetIdleUsers() {
    users.values().removeIf(CacheUser::isIdle);
  }

  /** The users of most bytes. */
  Map<Integer, CacheReport.OfUser> report() {
    Map<Integer, CacheReport.OfUser> all = new TreeMap<>();
    users.entrySet().stream()
        .sorted(Comparator.comparing(entry -> -entry.getValue().used().bytes()))
        .limit(MOST_REPORTED)
        .forEach(entry -> all.put(entry.getKey(), entry.getValue().report()));
    return all;
  }
}
