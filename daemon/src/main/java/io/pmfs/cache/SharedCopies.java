package io.pmfs.cache;

import static java.nio.file.StandardOpenOption.WRITE;

import io.pmfs.cache.SharedCopy.State;
import io.pmfs.cache.SharedCopy.Waiting;
import io.pmfs.fuse.system.PassedFile;
import io.pmfs.tier.FsException;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The copies of a node's cache, with one limit for all users. Safe for use by many threads.
 *
 * <p>INVARIANT: a copy that a connection may have open is never removed to make room: its room
 * would not be free before it is closed.
 */
final class SharedCopies implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(SharedCopies.class);

  /** How exactly the time of a copy's last use survives a restart. */
  private static final Duration USE_RECORDED = Duration.ofMinutes(1);

  /** A report is one message. */
  private static final int MOST_REPORTED = 200;

  private final CopyFiles files;
  private final long capacityBytes;
  private final Duration evictAfter;
  private final boolean deduplicates;
  private final InstantSource clock;
  private final Map<CopyKey, SharedCopy> byKey = new HashMap<>(); // GUARDED_BY(this)
  private final EqualCopies equalCopies = new EqualCopies(); // GUARDED_BY(this)
  private final Map<Integer, CacheUser> users = new TreeMap<>(); // GUARDED_BY(this)
  private long usedBytes; // GUARDED_BY(this)
  private long evicted; // GUARDED_BY(this)

  /**
   * Opens the copies that an earlier run left, and makes room if there are too many.
   *
   * @param evictAfter how long a copy must not have been asked for before another one may take its
   *     room, unless its user has more than a share
   * @param deduplicates whether to look for equal copies, to keep them once
   * @throws IOException if another process has them, or they cannot be read
   */
  SharedCopies(
      Path directory,
      long capacityBytes,
      Duration evictAfter,
      boolean deduplicates,
      InstantSource clock)
      throws IOException {
    this.files = new CopyFiles(directory);
    this.capacityBytes = capacityBytes;
    this.evictAfter = evictAfter;
    this.deduplicates = deduplicates;
    this.clock = clock;
    find();
  }

  private synchronized void find() throws IOException {
    List<SharedCopy> found = files.find();
    for (SharedCopy copy : found) {
      byKey.put(copy.key, copy);
      copy.equal().forEach(key -> byKey.put(key, copy));
      equalCopies.count(copy, copy.equal().size());
      user(copy.user).add(copy);
      usedBytes += copy.room();
      if (deduplicates) {
        equalCopies.candidate(copy);
      }
    }
    for (SharedCopy oldest : found) {
      if (usedBytes > capacityBytes && oldest.state != State.GONE) {
        remove(oldest);
      }
    }
  }

  /** Called with the lock held. */
  private CacheUser user(int uid) {
    return users.computeIfAbsent(uid, number -> new CacheUser());
  }

  /** The copy with a key, held for a user; null if there is none. It may be of any state. */
  synchronized @Nullable SharedCopy hold(CopyKey key, int user) {
    SharedCopy copy = byKey.get(key);
    if (copy != null) {
      touch(copy);
      hold(copy, user);
    }
    return copy;
  }

  /** Called with the lock held. */
  private void hold(SharedCopy copy, int user) {
    copy.holders++;
    user(user).hold(copy);
  }

  /** Called with the lock held. */
  private void touch(SharedCopy copy) {
    Instant now = clock.instant();
    if (copy.used.plus(USE_RECORDED).isBefore(now)) {
      copy.used = now;
      if (copy.isKept()) {
        files.touch(copy, now);
      }
    }
    user(copy.user).touch(copy);
  }

  /** Undoes one hold. */
  synchronized void release(SharedCopy copy, int user) {
    user(user).release(copy);
    touch(copy);
    letGo(copy);
  }

  /** Called with the lock held. */
  private void letGo(SharedCopy copy) {
    if (--copy.holders == 0 && copy.isOver()) {
      free(copy);
    }
  }

  /** Called with the lock held, when nobody can have it open any more. */
  private void free(SharedCopy copy) {
    usedBytes -= copy.room();
    user(copy.user).remove(copy);
  }

  /** Whether a copy is of an earlier run, and was not compared with its checksum yet. */
  synchronized boolean isFound(SharedCopy copy) {
    return copy.state == State.FOUND;
  }

  /** How many bytes of a copy can be read. */
  synchronized long reachedBytes(SharedCopy copy) {
    return copy.reached;
  }

  /** The bytes of the copies that a user has open. */
  synchronized long heldBytes(int user) {
    return user(user).heldBytes();
  }

  /**
   * Makes an empty copy that grows, held for the user, if there is none with this key and there is
   * room or others may go for it; else null.
   */
  @Nullable SharedCopy create(CopyKey key, int user) {
    if (!files.hasRoomFor(key.size())) {
      return null;
    }
    synchronized (this) {
      if (byKey.containsKey(key) || !makeRoom(SharedCopy.room(key.size()), user)) {
        return null;
      }
      Path file = files.incoming();
      try {
        files.create(file); // first: whoever finds the copy opens its file
      } catch (IOException e) {
        log.warn("{}: {}", file, e.getMessage());
        return null;
      }
      SharedCopy made = new SharedCopy(key, user, State.GROWING, file, clock.instant());
      byKey.put(key, made);
      user(user).add(made);
      usedBytes += made.room();
      hold(made, user);
      return made;
    }
  }

  /** Called with the lock held. Removes copies only if that is enough. */
  private boolean makeRoom(long bytes, int user) {
    if (bytes > capacityBytes) {
      return false;
    }
    user(user); // he gets a share, too
    Eviction eviction = new Eviction(users, capacityBytes, user, clock.instant().minus(evictAfter));
    List<SharedCopy> victims = eviction.victims(usedBytes + bytes - capacityBytes, bytes);
    if (victims == null) {
      return false;
    }
    for (SharedCopy victim : victims) {
      remove(victim);
      evicted += 1 + victim.equal().size();
    }
    return true;
  }

  /** Called with the lock held. */
  private void remove(SharedCopy copy) {
    copy.state = State.GONE;
    files.remove(copy);
    byKey.remove(copy.key, copy);
    copy.equal().forEach(key -> byKey.remove(key, copy));
    equalCopies.count(copy, -copy.equal().size());
    equalCopies.forget(copy);
    if (copy.holders == 0) {
      free(copy);
    }
  }

  /** A growing copy waits for a thread that makes it. */
  synchronized void queued(SharedCopy copy) {
    copy.isQueued = true;
  }

  /** Whether a copy will grow only later. */
  synchronized boolean isQueued(SharedCopy copy) {
    return copy.state == State.GROWING && copy.isQueued && !copy.isBegun;
  }

  /** A channel that writes a growing copy, by the thread that makes it. */
  FileChannel write(SharedCopy copy) throws IOException {
    Path file;
    synchronized (this) {
      copy.isBegun = true;
      file = copy.file;
    }
    return FileChannel.open(file, WRITE);
  }

  /** More of a growing copy can be read. Returns whose questions to answer now. */
  synchronized List<Waiting> reached(SharedCopy copy, long bytes) {
    copy.reached = bytes;
    List<Waiting> ready = new ArrayList<>();
    copy.waiting.removeIf(one -> one.wanted() <= bytes && ready.add(one));
    return ready;
  }

  /** A growing copy has all its bytes. Returns whose questions to answer now. */
  synchronized List<Waiting> complete(SharedCopy copy, int checksum) throws IOException {
    copy.file = files.keep(copy, checksum);
    copy.checksum = checksum;
    copy.reached = copy.key.size();
    copy.state = State.WHOLE;
    return takeWaiting(copy);
  }

  /** A copy could not be made, or is bad. Returns whose questions to answer now. */
  synchronized List<Waiting> fail(SharedCopy copy) {
    if (!copy.isOver()) {
      remove(copy);
    }
    return takeWaiting(copy);
  }

  /** Called with the lock held. */
  private static List<Waiting> takeWaiting(SharedCopy copy) {
    List<Waiting> all = copy.waiting;
    copy.waiting = new ArrayList<>();
    return all;
  }

  /** Keeps a question until the copy is as far as it asks; false if it is to be answered now. */
  synchronized boolean await(SharedCopy copy, Waiting question) {
    return copy.state == State.GROWING
        && copy.reached < question.wanted()
        && copy.waiting.add(question);
  }

  /** Takes a question back; false if it was answered, or is being answered. */
  synchronized boolean takeBack(SharedCopy copy, Waiting question) {
    return copy.waiting.remove(question);
  }

  /**
   * A copy as it is now.
   *
   * @param file open for reading if that was asked for; the caller closes it
   */
  record Present(State state, long reached, @Nullable PassedFile file) {}

  /**
   * Returns a copy as it is now.
   *
   * @param open opens it as the copy of this file, if it can be read; null if it is open
   */
  synchronized Present present(SharedCopy copy, @Nullable CopyKey open) throws FsException {
    State state = copy.state == State.REPLACED ? State.WHOLE : copy.state;
    boolean isReadable = state == State.GROWING || state == State.WHOLE;
    PassedFile file = open != null && isReadable ? PassedFile.open(files.name(copy, open)) : null;
    return new Present(state, copy.reached, file);
  }

  /** Compares a copy of an earlier run with its checksum; drops it if they differ. */
  void compare(SharedCopy copy) {
    boolean isGood = false;
    String fault = "it does not match its checksum";
    try {
      isGood = CopyContent.checksum(copy.file, copy.key.size()) == copy.checksum;
    } catch (IOException e) {
      fault = e.toString();
    }
    List<Waiting> waiting;
    boolean isDropped;
    synchronized (this) {
      if (isGood && copy.state == State.FOUND) {
        copy.state = State.WHOLE;
      }
      isDropped = !isGood && !copy.isOver();
      waiting = isDropped ? fail(copy) : List.of();
    }
    if (isDropped) {
      log.warn("dropped a copy of {} bytes: {}", copy.key.size(), fault);
    }
    waiting.forEach(Waiting::answer);
  }

  /** Whether a copy may be equal to another, which takes a comparison to know. */
  synchronized boolean mayBeEqual(SharedCopy copy) {
    return candidate(copy) != null;
  }

  /** Called with the lock held. */
  private @Nullable SharedCopy candidate(SharedCopy copy) {
    boolean isFit = deduplicates && copy.state == State.WHOLE && copy.equal().isEmpty();
    return isFit ? equalCopies.candidate(copy) : null;
  }

  /**
   * The copy to compare one with. Both stay until {@link #endComparison}.
   *
   * @return null if there is none
   */
  synchronized @Nullable SharedCopy beginComparison(SharedCopy copy) {
    SharedCopy other = candidate(copy);
    if (other != null) {
      copy.holders++;
      other.holders++;
    }
    return other;
  }

  /** Keeps two copies once if they are equal. */
  synchronized void endComparison(SharedCopy copy, SharedCopy other, boolean areEqual) {
    boolean isMerged = areEqual && copy.isKept() && other.isKept() && merge(copy, other);
    if (!isMerged && copy.isKept()) {
      equalCopies.prefer(copy);
    }
    letGo(copy);
    letGo(other);
  }

  /** Called with the lock held. Makes the copy another name of the other one's file. */
  private boolean merge(SharedCopy copy, SharedCopy other) {
    Path link;
    try {
      link = files.link(other, copy.key);
    } catch (IOException e) {
      log.info("equal copies are kept apart: {}", e.getMessage()); // such as too many links
      return false;
    }
    files.delete(copy.file);
    copy.file = link;
    copy.state = State.REPLACED;
    byKey.put(copy.key, other);
    other.state = State.WHOLE; // also if it was not compared with its checksum yet
    other.addEqual(copy.key);
    equalCopies.count(other, 1);
    touch(other);
    return true;
  }

  /** What there is, for a report. */
  synchronized CacheReport.Room room() {
    Map<Integer, CacheReport.OfUser> all = new TreeMap<>();
    users.entrySet().stream()
        .sorted(Comparator.comparing(entry -> -entry.getValue().bytes()))
        .limit(MOST_REPORTED)
        .forEach(
            entry -> {
              CacheUser user = entry.getValue();
              all.put(entry.getKey(), new CacheReport.OfUser(user.bytes(), user.heldBytes()));
            });
    return new CacheReport.Room(
        capacityBytes,
        usedBytes,
        byKey.size(),
        equalCopies.sharing(),
        equalCopies.sparedBytes(),
        evicted,
        all);
  }

  @Override
  public void close() {
    files.close();
  }
}
