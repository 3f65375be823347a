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
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The copies of a node's cache, with one limit for all users. Thread-safe.
 *
 * <p>INVARIANT: space counts as free only once its file is empty or, according to the kernel, not
 * open. What connections report about their open copies can keep a copy but never frees its space
 * (docs/decisions/0049).
 */
final class SharedCopies implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(SharedCopies.class);

  /** A limit, because other requests may take the space that each step of an eviction frees. */
  private static final int MOST_STEPS = 1000;

  private static final int LOOKED_AT = 1000;
  private static final long REMOVAL_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  /** The key of files that an earlier run left behind. */
  private static final CopyKey UNKNOWN = new CopyKey(0, 0, 0, Instant.EPOCH, Instant.EPOCH);

  private final CopyFiles files;
  private final CopyIndex index;
  private final CacheRules rules;
  private final InstantSource clock;
  private final CopyRoom room; // GUARDED_BY(this)
  private final KnownCopies known; // GUARDED_BY(this)

  /** Copies that are open although no connection holds them. */
  private final Set<SharedCopy> suspicious = new LinkedHashSet<>(); // GUARDED_BY(this)

  /** Discarded copies, no longer open, whose files are yet to be removed, without the lock. */
  private final Deque<SharedCopy> closed = new ArrayDeque<>(); // GUARDED_BY(this)

  private long evicted; // GUARDED_BY(this)
  private boolean isClosed; // GUARDED_BY(this)

  /**
   * Takes over files and index, with the copies of an earlier run; evicts some if there are too
   * many.
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

  // Private methods require the lock, except those that remove files.

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

  /** Asks the kernel whether a copy without holders is still open. */
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

  /** Removes the files of closed copies; called without the lock because it may take long. */
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

  /** Checks some of the copies that were still open after their release. Called periodically. */
  void lookAgain() {
    synchronized (this) {
      List<SharedCopy> some = suspicious.stream().limit(LOOKED_AT).toList();
      for (SharedCopy copy : some) {
        suspicious.remove(copy); // moves it to the end of the queue
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

  /** Whether a copy is of an earlier run and not yet verified. */
  synchronized boolean isFound(SharedCopy copy) {
    return copy.state == State.FOUND;
  }

  synchronized long reachedBytes(SharedCopy copy) {
    return copy.reached;
  }

  /**
   * Finds a copy, or creates an empty one if there is space or others can be evicted; holds it for
   * the user.
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

  /** Waits while other threads remove files. */
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
      files.create(file); // first: other threads may open it as soon as the copy is found
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
   * The copies to evict for a new one, beyond those being removed; null if not enough can be freed.
   *
   * @param lately copies of the user used after this are kept
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

  /** A growing copy waits for a thread. */
  synchronized void queued(SharedCopy copy) {
    copy.isQueued = copy.writer == null;
  }

  /** Whether a growing copy still waits for a thread. */
  synchronized boolean isQueued(SharedCopy copy) {
    return copy.state == State.GROWING && copy.isQueued;
  }

  /** Opens a growing copy for writing. */
  synchronized FileChannel write(SharedCopy copy) throws IOException {
    if (copy.state != State.GROWING) {
      throw new IOException("it was given up");
    }
    copy.isQueued = false;
    FileChannel writer = FileChannel.open(copy.file, WRITE);
    copy.writer = writer;
    return writer;
  }

  /** More of a growing copy can be read. Returns the requests to answer now. */
  synchronized List<Waiting> reached(SharedCopy copy, long bytes) {
    return copy.reach(bytes);
  }

  /** A growing copy has all its bytes, and is closed. Returns the requests to answer now. */
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
   * Drops a copy that could not be made or is bad. A growing one is truncated at once: its readers
   * then read the source. Returns the requests to answer now.
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

  /** Registers a request until the copy has the wanted bytes; false if it can be answered now. */
  synchronized boolean await(SharedCopy copy, Waiting question) {
    return copy.state == State.GROWING
        && copy.reached < question.wanted()
        && copy.waiting.add(question);
  }

  /** Withdraws a request; false if it is answered already. */
  synchronized boolean takeBack(SharedCopy copy, Waiting question) {
    return copy.waiting.remove(question);
  }

  /** A snapshot of a copy, whose file it may have open. Until closed, it holds the copy. */
  final class Present implements AutoCloseable {
    private final SharedCopy copy;
    private final State state;
    private final long reached;
    private final @Nullable PassedFile file;
    private final boolean holds;

    private Present(SharedCopy copy, State state, @Nullable PassedFile file, boolean holds) {
      this.copy = copy;
      this.state = state;
      this.reached = copy.reached;
      this.file = file;
      this.holds = holds;
      if (holds) {
        copy.holders++;
      }
    }

    State state() {
      return state;
    }

    long reached() {
      return reached;
    }

    /** The open file, if requested and readable. */
    @Nullable PassedFile file() {
      return file;
    }

    @Override
    public void close() {
      if (file != null) {
        file.close();
      }
      if (holds) {
        synchronized (SharedCopies.this) {
          letGo(copy);
        }
        removeClosed();
      }
    }
  }

  /**
   * A copy is gone for a request whose handle was released before the answer.
   *
   * @param open whether to open the copy's file, if it can be read
   */
  synchronized Present present(SharedCopy copy, boolean open) throws FsException {
    if (copy.holders == 0) {
      return new Present(copy, State.GONE, null, false);
    }
    State state = copy.state;
    boolean isReadable = state == State.GROWING || state == State.WHOLE;
    PassedFile file = open && isReadable ? PassedFile.open(copy.file) : null;
    return new Present(copy, state, file, true);
  }

  /** Whether the caller is to verify a copy: false if another thread does that already. */
  synchronized boolean beginComparison(SharedCopy copy) {
    boolean isFirst = !copy.isCompared;
    copy.isCompared = true;
    return isFirst;
  }

  synchronized void endComparison(SharedCopy copy) {
    copy.isCompared = false;
  }

  /**
   * Verifies the checksum of a copy of an earlier run; drops a copy that does not match.
   *
   * @param progress is called with the number of bytes of each part that was read
   */
  void compare(SharedCopy copy, LongConsumer progress) {
    boolean isGood = false;
    String fault = "it does not match its checksum";
    Entry entry;
    synchronized (this) {
      entry = copy.entry;
    }
    try {
      isGood =
          entry != null
              && CopyContent.checksum(copy.file, copy.key.size(), progress) == entry.checksum();
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

  /** Marks the index as closed properly and unlocks the directory. */
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
