package io.pmfs.cache;

import static java.nio.file.StandardOpenOption.WRITE;

import io.pmfs.cache.CopyIndex.Entry;
import io.pmfs.cache.SharedCopy.State;
import io.pmfs.cache.SharedCopy.Waiting;
import io.pmfs.fuse.system.PassedFile;
import io.pmfs.posix.FsException;
import io.pmfs.table.StateException;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The copies of a node's cache, with one limit for all users. Safe for use by many threads.
 *
 * <p>INVARIANT: room counts as free when the file that took it is empty or nobody has it open, as
 * the kernel says. Connections say which copies they have open and when they close them; that is
 * believed only to keep a copy, never to free its room (docs/decisions/0049).
 *
 * <p>Only copies that grow, that connections hold or that somebody may have open are objects; the
 * others are records of the {@link CopyIndex}.
 */
final class SharedCopies implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(SharedCopies.class);

  /** Each step of an eviction frees what one transaction holds; others may take that. */
  private static final int MOST_STEPS = 1000;

  private static final int LOOKED_AT = 1000;
  private static final long REMOVAL_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  /** In place of what a file was a copy of that an earlier run left behind. */
  private static final CopyKey UNKNOWN = new CopyKey(0, 0, 0, Instant.EPOCH, Instant.EPOCH);

  private final CopyFiles files;
  private final CopyIndex index;
  private final CacheRules rules;
  private final InstantSource clock;
  private final CopyRoom room; // GUARDED_BY(this)
  private final KnownCopies known; // GUARDED_BY(this)

  /** What nobody holds, and somebody has open. */
  private final Set<SharedCopy> suspicious = new LinkedHashSet<>(); // GUARDED_BY(this)

  /** Over, and nobody has it open: its file is to be removed without the lock. */
  private final Deque<SharedCopy> closed = new ArrayDeque<>(); // GUARDED_BY(this)

  private long evicted; // GUARDED_BY(this)
  private boolean isClosed; // GUARDED_BY(this)

  /**
   * Takes over files and index, which have the copies that an earlier run left, and makes room if
   * there are too many.
   */
  SharedCopies(CopyFiles files, CopyIndex index, CacheRules rules, InstantSource clock)
      throws IOException {
    this.files = files;
    this.index = index;
    this.rules = rules;
    this.clock = clock;
    this.room = new CopyRoom(rules.capacity());
    this.known = new KnownCopies(files, index, room, clock);
    settleLeftovers();
    shrink();
  }

  private synchronized void settleLeftovers() throws IOException {
    for (Path left : files.leftovers()) {
      SharedCopy gone = new SharedCopy(UNKNOWN, CopyKey.NOBODY, State.GONE, left);
      gone.space = Space.of(left.toFile().length());
      room.add(gone.user, gone.space);
      settle(gone);
    }
  }

  private void shrink() {
    boolean goesOn = true;
    for (int step = 0; goesOn && step < MOST_STEPS; step++) {
      synchronized (this) {
        List<SharedCopy> victims = victims(Space.NONE, CopyKey.NOBODY, Long.MAX_VALUE);
        goesOn = victims != null && !victims.isEmpty();
        evict(victims == null ? List.of() : victims);
      }
      removeClosed();
    }
  }

  // Private methods are called with the lock held, except those that remove files.

  /** The copy with a key, held for a user. */
  synchronized HeldCopy hold(CopyKey key, int user) {
    SharedCopy copy = known.find(key);
    if (copy == null) {
      return HeldCopy.NONE;
    }
    if (!room.user(user).mayHaveOpen(copy) && isOverLimit(key, user)) {
      return HeldCopy.LIMIT;
    }
    known.touch(copy, user);
    hold(copy, user);
    return new HeldCopy(copy, false, null);
  }

  private boolean isOverLimit(CopyKey key, int user) {
    CacheService.Limits limits = rules.limits();
    return room.user(user).openBytes() + key.size() > limits.heldBytes()
        || room.user(user).openCopies() >= limits.copiesOfUser()
        || known.activeCount() + suspicious.size() >= limits.copies();
  }

  private void hold(SharedCopy copy, int user) {
    known.activate(copy);
    copy.holders++;
    room.user(user).hold(copy);
    if (!copy.given.contains(user)) {
      copy.given.add(user);
    }
  }

  /** Undoes one hold. */
  void release(SharedCopy copy, int user) {
    synchronized (this) {
      room.user(user).release(copy);
      known.touch(copy, user);
      letGo(copy);
    }
    removeClosed();
  }

  private void letGo(SharedCopy copy) {
    if (--copy.holders == 0 && copy.state != State.GROWING) {
      settle(copy);
    }
  }

  /** Asks the kernel whether anybody has a copy open that nobody holds. */
  private void settle(SharedCopy copy) {
    if (files.isOpen(copy.file)) {
      suspicious.add(copy);
      copy.given.forEach(user -> room.user(user).suspect(copy));
      return;
    }
    suspicious.remove(copy);
    copy.given.forEach(user -> room.user(user).clear(copy));
    copy.given.clear();
    known.deactivate(copy);
    if (copy.state == State.GONE) {
      close(copy);
    }
  }

  private void close(SharedCopy copy) {
    closed.add(copy);
    room.goes(copy);
  }

  /** Removes files that nobody has open; called without the lock, as that may take long. */
  private void removeClosed() {
    SharedCopy copy;
    while ((copy = nextClosed()) != null) {
      files.discard(copy.file);
      synchronized (this) {
        room.isGone(copy);
        notifyAll();
      }
    }
  }

  private synchronized @Nullable SharedCopy nextClosed() {
    return closed.poll();
  }

  /** Looks whether what was open in spite of its holders still is. Called now and then. */
  void lookAgain() {
    synchronized (this) {
      List<SharedCopy> some = suspicious.stream().limit(LOOKED_AT).toList();
      for (SharedCopy copy : some) {
        suspicious.remove(copy); // the others come first next time
        if (copy.holders == 0) {
          settle(copy);
        } else {
          suspicious.add(copy);
        }
      }
      room.forgetIdleUsers();
    }
    removeClosed();
  }

  /** Whether a copy is of an earlier run, and was not compared with its checksum yet. */
  synchronized boolean isFound(SharedCopy copy) {
    return copy.state == State.FOUND;
  }

  /** How many bytes of a copy can be read. */
  synchronized long reachedBytes(SharedCopy copy) {
    return copy.reached;
  }

  /**
   * The copy with a key, or an empty one that grows if there is none and there is room, or others
   * may go for it; held for the user.
   */
  HeldCopy make(CopyKey key, int user) {
    Space needed = Space.of(key.size());
    if (!files.hasRoomFor(key.size()) || !needed.fitsIn(rules.capacity())) {
      return HeldCopy.NO_ROOM;
    }
    for (int step = 0; step < MOST_STEPS; step++) {
      synchronized (this) {
        HeldCopy there = hold(key, user);
        if (!there.equals(HeldCopy.NONE)) {
          return there;
        }
        if (isOverLimit(key, user)) {
          return HeldCopy.LIMIT;
        }
        if (room.hasRoomFor(needed)) {
          return create(key, user);
        }
        long lately = KnownCopies.nanos(clock.instant().minus(rules.evictAfter()));
        List<SharedCopy> victims = victims(needed, user, lately);
        if (victims == null) {
          return HeldCopy.NO_ROOM;
        }
        evict(victims);
      }
      removeClosed();
      awaitRemovals();
    }
    return HeldCopy.NO_ROOM;
  }

  /** Waits for files that other threads are removing. */
  private synchronized void awaitRemovals() {
    long end = System.nanoTime() + REMOVAL_NANOS;
    try {
      while (closed.isEmpty() && room.isAnythingGoing() && System.nanoTime() - end < 0) {
        wait(TimeUnit.NANOSECONDS.toMillis(REMOVAL_NANOS));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private HeldCopy create(CopyKey key, int user) {
    Path file = files.incoming();
    try {
      files.create(file); // first: whoever finds the copy opens its file
    } catch (IOException e) {
      log.warn("{}: {}", file, e.getMessage());
      return HeldCopy.NO_ROOM;
    }
    SharedCopy made = new SharedCopy(key, user, State.GROWING, file);
    room.add(user, made.space);
    hold(made, user);
    return new HeldCopy(made, true, null);
  }

  /**
   * What goes for a new copy, unless room is being made already; null if that is impossible.
   *
   * @param lately copies of the user used after this stay
   */
  private @Nullable List<SharedCopy> victims(Space needed, int user, long lately) {
    Eviction eviction =
        new Eviction(room.users(), room.capacity(), user, lately, known.new LeastRecentlyUsed());
    return eviction.victims(room.missingFor(needed), needed);
  }

  private void evict(List<SharedCopy> victims) {
    for (SharedCopy victim : victims) {
      known.remove(victim);
      evicted++;
      close(victim);
    }
  }

  /** A growing copy waits for a thread that makes it. */
  synchronized void queued(SharedCopy copy) {
    copy.isQueued = copy.writer == null;
  }

  /** Whether a copy will grow only later. */
  synchronized boolean isQueued(SharedCopy copy) {
    return copy.state == State.GROWING && copy.isQueued;
  }

  /** A channel that writes a growing copy, by the thread that makes it. */
  synchronized FileChannel write(SharedCopy copy) throws IOException {
    if (copy.state != State.GROWING) {
      throw new IOException("it was given up");
    }
    copy.isQueued = false;
    FileChannel writer = FileChannel.open(copy.file, WRITE);
    copy.writer = writer;
    return writer;
  }

  /** More of a growing copy can be read. Returns whose questions to answer now. */
  synchronized List<Waiting> reached(SharedCopy copy, long bytes) {
    return copy.reach(bytes);
  }

  /** A growing copy has all its bytes, and is closed. Returns whose questions to answer now. */
  synchronized List<Waiting> complete(SharedCopy copy, int checksum) throws IOException {
    if (copy.state != State.GROWING) {
      throw new IOException("it was given up");
    }
    known.keep(copy, checksum);
    if (copy.holders == 0) {
      settle(copy);
    }
    return copy.takeWaiting();
  }

  /**
   * A copy could not be made, or is bad. What there is of one that grew is removed at once: whoever
   * reads it finds it shorter, and reads the source. Returns whose questions to answer now.
   */
  List<Waiting> fail(SharedCopy copy) {
    boolean grew;
    FileChannel writer;
    List<Waiting> waiting;
    synchronized (this) {
      waiting = copy.takeWaiting();
      if (copy.state == State.GONE) {
        return waiting;
      }
      grew = copy.state == State.GROWING;
      writer = copy.writer;
      copy.holders++;
      if (grew) {
        copy.state = State.GONE;
        known.deactivate(copy);
      } else {
        known.remove(copy);
      }
    }
    if (grew) {
      files.empty(copy.file, writer);
    }
    synchronized (this) {
      if (grew) {
        room.remove(copy.user, copy.space);
        copy.space = Space.of(0);
        room.add(copy.user, copy.space);
      }
      letGo(copy);
    }
    removeClosed();
    return waiting;
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

  /** A copy as it is now. Until it is closed it counts as open, as its file is open here. */
  final class Present implements AutoCloseable {
    private final SharedCopy copy;
    private final State state;
    private final long reached;
    private final @Nullable PassedFile file;

    private Present(SharedCopy copy, State state, @Nullable PassedFile file) {
      this.copy = copy;
      this.state = state;
      this.reached = copy.reached;
      this.file = file;
      copy.holders++;
    }

    State state() {
      return state;
    }

    long reached() {
      return reached;
    }

    /** Open for reading, if that was asked for and it can be read. */
    @Nullable PassedFile file() {
      return file;
    }

    @Override
    public void close() {
      if (file != null) {
        file.close();
      }
      synchronized (SharedCopies.this) {
        letGo(copy);
      }
      removeClosed();
    }
  }

  /**
   * Returns a copy as it is now.
   *
   * @param open whether to open its file, if it can be read
   */
  synchronized Present present(SharedCopy copy, boolean open) throws FsException {
    State state = copy.state;
    boolean isReadable = state == State.GROWING || state == State.WHOLE;
    return new Present(copy, state, open && isReadable ? PassedFile.open(copy.file) : null);
  }

  /** Compares a copy of an earlier run with its checksum; drops it if they differ. */
  void compare(SharedCopy copy) {
    boolean isGood = false;
    String fault = "it does not match its checksum";
    Entry entry;
    synchronized (this) {
      entry = copy.entry;
    }
    try {
      isGood =
          entry != null && CopyContent.checksum(copy.file, copy.key.size()) == entry.checksum();
    } catch (IOException e) {
      fault = e.toString();
    }
    synchronized (this) {
      if (isGood) {
        known.trust(copy);
      } else if (copy.state == State.GONE) {
        return;
      }
    }
    if (!isGood) {
      log.warn("dropped a copy of {} bytes: {}", copy.key.size(), fault);
      fail(copy).forEach(Waiting::answer);
    }
  }

  /** What there is, for a report. */
  synchronized CacheReport.Room room() {
    return new CacheReport.Room(
        room.capacity().bytes(),
        room.used().bytes(),
        room.capacity().files(),
        room.used().files(),
        known.copies(),
        suspicious.size(),
        evicted,
        room.report());
  }

  /** Lets the index be trusted by the next run, and gives up the directory. */
  @Override
  public synchronized void close() {
    if (isClosed) {
      return;
    }
    isClosed = true;
    try {
      index.opened(null);
    } catch (StateException e) {
      log.warn("{}", e.getMessage());
    } finally {
      index.close();
      files.close();
    }
  }
}
