package io.pmfs.cache;

import com.google.errorprone.annotations.CanIgnoreReturnValue;
import io.pmfs.cache.CopyIndex.Entry;
import io.pmfs.cache.SharedCopy.State;
import io.pmfs.table.StateException;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds copies. An active copy, which grows, is held or may be open, is an object; all others are
 * only records of the {@link CopyIndex}. Guarded by {@link SharedCopies}.
 */
final class KnownCopies {
  private static final Logger log = LoggerFactory.getLogger(KnownCopies.class);

  /** The resolution of the recorded times of use. */
  private static final long USE_RECORDED_NANOS = Duration.ofMinutes(1).toNanos();

  /** The most copies in use that an eviction skips. */
  private static final int MOST_PASSED = 1000;

  private final CopyFiles files;
  private final CopyIndex index;
  private final CopyRoom room;
  private final InstantSource clock;

  // INVARIANT: a copy that is not in here was not served by this run since its file was last known
  // to be closed.
  private final Map<CopyKey, SharedCopy> active = new HashMap<>();

  /** Records without a copy, which could not be removed. */
  private final Map<CopyKey, Entry> stale = new HashMap<>();

  private long copies;
  private long lastUse;

  /** Charges the copies in the index to their users. */
  KnownCopies(CopyFiles files, CopyIndex index, CopyRoom room, InstantSource clock) {
    this.files = files;
    this.index = index;
    this.room = room;
    this.clock = clock;
    index.forEach(
        (user, key) -> {
          room.add(user, Space.of(key.size()));
          copies++;
        });
  }

  /** The number of complete copies. */
  long copies() {
    return copies;
  }

  /** The current time, later than any time returned before. */
  private long now() {
    lastUse = Math.max(nanos(clock.instant()), lastUse + 1);
    return lastUse;
  }

  static long nanos(Instant time) {
    return TimeUnit.SECONDS.toNanos(time.getEpochSecond()) + time.getNano();
  }

  @Nullable SharedCopy find(CopyKey key) {
    SharedCopy known = active.get(key);
    Entry entry = known == null && !isStale(key) ? index.find(key) : null;
    return entry == null ? known : loaded(entry);
  }

  private SharedCopy loaded(Entry entry) {
    State state = entry.comparedBy() == files.run() ? State.WHOLE : State.FOUND;
    Path file = files.whole(entry.key(), entry.checksum());
    SharedCopy copy = new SharedCopy(entry.key(), entry.user(), state, file);
    copy.entry = entry;
    copy.reached = entry.key().size();
    return copy;
  }

  void activate(SharedCopy copy) {
    active.put(copy.key, copy);
  }

  /** Drops the object of a copy, which leaves at most its record. */
  void deactivate(SharedCopy copy) {
    active.remove(copy.key, copy);
  }

  int activeCount() {
    return active.size();
  }

  /** Returns false if the record could not be replaced. */
  @CanIgnoreReturnValue
  private boolean record(SharedCopy copy, Entry before, Entry now) {
    try {
      index.put(before, now);
      copy.entry = now;
      return true;
    } catch (StateException e) {
      log.debug("{}", e.getMessage());
      return false;
    }
  }

  /** Records a use. A copy without a known user is charged to this user from now on. */
  void touch(SharedCopy copy, int user) {
    Entry entry = copy.entry;
    if (entry == null) {
      return;
    }
    boolean isAdopted = copy.user == CopyKey.NOBODY && user != CopyKey.NOBODY;
    long now = now();
    if (!isAdopted && Math.abs(now - entry.used()) < USE_RECORDED_NANOS) {
      return;
    }
    if (record(copy, entry, entry.used(isAdopted ? user : copy.user, now)) && isAdopted) {
      room.remove(copy.user, copy.space);
      copy.user = user;
      room.add(user, copy.space);
    }
  }

  /** Records that a copy of an earlier run matched its checksum. */
  void trust(SharedCopy copy) {
    Entry entry = copy.entry;
    if (copy.state == State.FOUND && entry != null) {
      copy.state = State.WHOLE;
      record(copy, entry, entry.comparedBy(files.run()));
    }
  }

  /** Completes a copy that has all its bytes. */
  void keep(SharedCopy copy, int checksum) throws IOException {
    Entry entry = new Entry(copy.key, copy.user, checksum, now(), files.run());
    index.put(stale.get(copy.key), entry); // first: every file below copies has a record
    stale.remove(copy.key);
    try {
      copy.file = files.keep(copy.file, copy.key, checksum);
    } catch (IOException e) {
      remove(entry);
      throw e;
    }
    copy.entry = entry;
    copy.reached = copy.key.size();
    copy.state = State.WHOLE;
    copies++;
  }

  /** Removes a copy's record and moves its file, which may be open, out of the copies. */
  void remove(SharedCopy copy) {
    Entry entry = copy.entry;
    if (entry == null) {
      return;
    }
    copy.file = files.leave(copy.file);
    remove(entry);
    copy.state = State.GONE;
    copy.entry = null;
    deactivate(copy);
    copies--;
  }

  private void remove(Entry entry) {
    try {
      index.remove(entry);
      stale.remove(entry.key());
    } catch (StateException e) {
      log.warn("{}", e.getMessage());
      stale.put(entry.key(), entry);
    }
  }

  /** Whether a key has a record without a copy; tries again to remove that. */
  private boolean isStale(CopyKey key) {
    Entry entry = stale.get(key);
    if (entry != null) {
      remove(entry);
    }
    return entry != null;
  }

  /** Copies that may be evicted: not held, and not open according to the kernel. */
  final class LeastRecentlyUsed implements Eviction.Candidates {
    private final Map<Integer, CopyIndex.Page> pages = new HashMap<>();
    private int passed;

    @Override
    public @Nullable SharedCopy next(int user) {
      CacheUser his = room.user(user);
      CopyIndex.Page page =
          pages.computeIfAbsent(user, uid -> index.leastRecentlyUsed(uid, his.leastRecent()));
      while (passed < MOST_PASSED) {
        Entry entry = page.next();
        if (entry == null) {
          return null;
        }
        his.leastRecent(page.first());
        if (isStale(entry.key())) {
          passed++;
          continue;
        }
        SharedCopy known = active.get(entry.key());
        SharedCopy copy = known == null ? loaded(entry) : known;
        if (known == null && !files.isOpen(copy.file)) {
          return copy;
        }
        touch(copy, copy.user); // or the next eviction would find it again
        passed++;
      }
      return null;
    }
  }
}
