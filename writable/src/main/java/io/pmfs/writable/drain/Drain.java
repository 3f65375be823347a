package io.pmfs.writable.drain;

import io.pmfs.tier.DaemonThread;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.writable.Contents;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.DrainStatus.Failure;
import io.pmfs.writable.LiveFile;
import io.pmfs.writable.LiveFiles;
import io.pmfs.writable.NodeAway;
import io.pmfs.writable.OpenFiles;
import io.pmfs.writable.Room;
import io.pmfs.writable.Untold;
import io.pmfs.writable.WritableSettings;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Deferred;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Refusal;
import io.pmfs.writable.journal.State;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets the committer work while there is something to do, tries again what the source refuses, and
 * brings files that stay open and grow there in pieces. Safe for use by many threads.
 */
public final class Drain implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Drain.class);

  private static final long FIRST_PAUSE_MILLIS = 100;
  private static final long LONGEST_PAUSE_MILLIS = 30_000;
  private static final long IDLE_MILLIS = 1000;
  private static final long CLOSE_MILLIS = 5000;
  private static final long WAIT_MILLIS = 200;

  /** Longer than the pause of {@link io.pmfs.metadata.TableStore} after a failure. */
  private static final long REOPEN_MILLIS = 1500;

  private static final int TOLD = 100;
  private static final int SCANNED = 10_000;

  private final State state;
  private final Committer committer;
  private final Room room;
  private final LiveFiles live;
  private final Contents contents;
  private final Untold untold;
  private final Step step;
  private final Conflicts conflicts;
  private final WritableSettings settings;
  private final InstantSource clock;
  private final List<Thread> threads = new ArrayList<>();
  private volatile boolean closed;
  private volatile @Nullable Failure refused;

  /** If a step fails because a node does not answer. */
  private volatile @Nullable NodeAway away;

  private final AtomicLong refusals = new AtomicLong();

  /** Files that could not be closed, and why. */
  private final Map<Long, Exception> unclosed = new ConcurrentHashMap<>();

  private volatile boolean isHurried;
  private @Nullable Due due;

  public Drain(
      State state,
      Committer committer,
      Room room,
      LiveFiles live,
      Contents contents,
      Untold untold,
      Step step,
      Conflicts conflicts,
      WritableSettings settings,
      InstantSource clock) {
    this.state = state;
    this.committer = committer;
    this.room = room;
    this.live = live;
    this.contents = contents;
    this.untold = untold;
    this.step = step;
    this.conflicts = conflicts;
    this.settings = settings;
    this.clock = clock;
  }

  public void start() {
    if (settings.copiers() == 0) {
      return;
    }
    threads.add(DaemonThread.lasting("pmfs-committer", this::commitLoop));
    threads.add(DaemonThread.lasting("pmfs-outputs", this::tidyLoop));
    threads.forEach(Thread::start);
  }

  // ---- the loops

  private void commitLoop() {
    long pause = FIRST_PAUSE_MILLIS;
    while (!closed) {
      long head = state.head();
      long committed = state.committed();
      try {
        if (step()) {
          pause = FIRST_PAUSE_MILLIS;
          continue;
        }
        state.awaitChange(
            head, committed, state.deferred().isEmpty() ? IDLE_MILLIS : FIRST_PAUSE_MILLIS);
      } catch (FsException | RuntimeException | Error e) {
        if (closed) {
          return;
        }
        refuse(e, pause);
        if (!sleep(pause)) {
          return;
        }
        pause = Math.min(LONGEST_PAUSE_MILLIS, 2 * pause);
      } catch (InterruptedException e) {
        return;
      }
    }
  }

  /** The same, with what the loop does about a refusal. */
  public boolean attempt() throws FsException {
    try {
      return step();
    } catch (FsException e) {
      refuse(e, 0);
      throw e;
    }
  }

  /** Makes the next step at the source; returns false if there is none. */
  public boolean step() throws FsException {
    boolean isDone = committer.step();
    callIfDone();
    Failure before = refused;
    if (before != null && isDone) {
      log.info("the source accepts changes again, after {}", before.reason());
      refused = null;
      away = null;
    }
    return isDone;
  }

  /** What is done once the source has the changes up to one. */
  public interface Task {
    void run() throws FsException;
  }

  private record Due(long sequence, Task task) {}

  /** Runs a task once the source has the changes up to one: at once, or in a step. */
  public void whenDone(long sequence, Task task) throws FsException {
    due = new Due(sequence, task);
    callIfDone();
  }

  private void callIfDone() throws FsException {
    Due task = due;
    if (task != null && state.committed() >= task.sequence()) {
      task.task().run();
      due = null;
    }
  }

  private void refuse(Throwable e, long pause) {
    Change change = committer.current();
    String path = change == null ? "" : path(change);
    String stateFailure = state.failure();
    FsException cause = e instanceof FsException answer && stateFailure == null ? answer : null;
    boolean isNew = refused == null;
    away = cause == null ? null : awayNode(cause);
    if (stateFailure != null) {
      refused = new Failure(path, "the state is not recorded: " + stateFailure, null);
    } else if (cause != null) {
      refused = Failure.of(path, cause);
    } else {
      refused =
          new Failure(
              path, e instanceof Error ? e.toString() : String.valueOf(e.getMessage()), null);
    }
    refusals.incrementAndGet();
    if (!isNew) {
      log.debug("not made for another {} ms", pause, e);
    } else if (stateFailure != null) {
      log.warn("the state is not recorded, and changes wait: {}", stateFailure);
    } else {
      log.warn(
          "a change of {} is not at the source: {}; it is tried again", path, refused.reason());
      if (change != null && cause != null) {
        untold.add(change.inode(), cause);
      }
    }
    if (stateFailure == null && cause == null) {
      log.error("a step at the source failed", e);
    }
    state.wake();
  }

  private static @Nullable NodeAway awayNode(Exception e) {
    return e.getCause() instanceof NodeAway node ? node : null;
  }

  /** What failed may succeed now: a node that was away is back. */
  public void hurry() {
    isHurried = true;
    committer.again().ask();
  }

  /** Pauses unless a caller of {@link #drain} waits; returns false if the thread is to end. */
  private boolean sleep(long millis) {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
    try {
      while (!closed && System.nanoTime() - end < 0 && !isHurried) {
        Thread.sleep(Math.min(50, millis));
      }
      isHurried = false;
      return !closed;
    } catch (InterruptedException e) {
      return false;
    }
  }

  private void tidyLoop() {
    long pieceNanos = TimeUnit.MILLISECONDS.toNanos(settings.pieceMillis());
    long piecesAt = System.nanoTime() + pieceNanos;
    while (!closed) {
      try {
        while (!closed && room.collect()) {
          log.trace("removed data files");
        }
        room.tidyAtSource();
        tryCloseLeft();
        if (System.nanoTime() - piecesAt >= 0) {
          announcePieces();
          piecesAt = System.nanoTime() + pieceNanos;
        }
      } catch (FsException | RuntimeException e) {
        log.warn("tidying: {}", e.getMessage());
      }
      try {
        Thread.sleep(Math.min(200, settings.pieceMillis()));
      } catch (InterruptedException e) {
        return;
      }
    }
  }

  /** Announces what files that only grow have now. */
  public void announcePieces() throws FsException {
    for (LiveFile file : live.all()) {
      try {
        announcePiece(file);
      } catch (FsException e) {
        log.debug("inode {} does not reach the source yet: {}", file.number, e.getMessage());
      } finally {
        live.release(file);
      }
    }
  }

  private void announcePiece(LiveFile file) throws FsException {
    Inode before = state.find(file.number);
    if (before == null || !before.is(Inode.WRITING) || before.isRemoved()) {
      return;
    }
    if (!file.lock.writeLock().tryLock()) {
      return;
    }
    try {
      Inode inode = state.find(file.number);
      if (inode != null && inode.is(Inode.WRITING) && contents.hasGrown(file, inode)) {
        contents.announce(file, OpenFiles.owner(inode));
        contents.bring(file);
      }
    } finally {
      file.lock.writeLock().unlock();
    }
  }

  // ---- files that could not be closed

  /** Tells the journal of what was written to a file that nothing has open. */
  public void close(long number) throws FsException {
    Inode inode = state.find(number);
    if (inode != null) {
      live.exclusively(number, file -> contents.announce(file, OpenFiles.owner(inode)));
    }
    unclosed.remove(number);
  }

  /** A file was closed, but the journal could not be told: that is tried again. */
  public void closeLater(long number, Exception why) {
    unclosed.put(number, why);
  }

  public int unclosedCount() {
    return unclosed.size();
  }

  private boolean tryCloseLeft() {
    for (long number : unclosed.keySet()) {
      try {
        close(number);
      } catch (FsException e) {
        log.debug("inode {} is not closed: {}", number, e.getMessage());
        closeLater(number, e);
      }
    }
    return unclosed.isEmpty();
  }

  // ---- waiting for the source

  public boolean drain(long timeoutMillis) throws InterruptedException {
    long begin = System.nanoTime();
    if (!tryCloseLeft()) {
      // A state that failed is opened again after a pause.
      Thread.sleep(Math.max(0, Math.min(timeoutMillis, REOPEN_MILLIS)));
      tryCloseLeft();
    }
    long until = state.head();
    long refusedBefore = refusals.get();
    isHurried = true;
    long pass = committer.again().ask();
    while (state.committed() < until || isDeferred(until)) {
      long left = timeoutMillis - TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin);
      boolean isStopped = refused != null && refusals.get() > refusedBefore + 1;
      boolean isTried = state.committed() >= until && committer.again().hasEnded(pass);
      if (left <= 0 || closed || isStopped || isTried) {
        return false;
      }
      state.awaitChange(state.head(), state.committed(), Math.min(left, WAIT_MILLIS));
    }
    tidyUp();
    return conflicts.givenUpCount() == 0 && unclosed.isEmpty();
  }

  /** Nothing of pmfs stays at the source. */
  private void tidyUp() {
    try {
      while (room.collect()) {
        log.trace("removed data files");
      }
      room.tidyAtSource();
    } catch (FsException e) {
      log.debug("tidying: {}", e.getMessage());
    }
  }

  /** Whether one of the changes up to one was passed and is not at the source. */
  private boolean isDeferred(long until) {
    Deferred.Entry first = state.deferred().from(0);
    return first != null && first.change().sequence() <= until;
  }

  /**
   * Waits until the source has the changes of a node.
   *
   * @throws FsException with the source's answer, if it refuses one of them or one that they depend
   *     on
   */
  public void await(Inode inode) throws FsException {
    long refusedBefore = refusals.get();
    isHurried = true;
    long pass = committer.again().ask();
    while (isMissing(inode)) {
      Failure now = refused;
      if (now != null && refusals.get() > refusedBefore) {
        untold.forget(inode.number());
        FsException cause = now.cause();
        throw cause == null
            ? new FsException(Errno.EIO, now.reason())
            : new FsException(cause.errno(), "the source: " + now.reason(), cause);
      }
      Refusal refusal = refusal(inode);
      if (refusal != null && (refusal.isAside() || committer.again().hasEnded(pass))) {
        untold.forget(inode.number());
        throw refusal.toException();
      }
      if (closed) {
        throw new FsException(Errno.EIO, "the mount ends before the source has the change");
      }
      step.tree.looks().checkInterrupted();
      try {
        state.awaitChange(state.head(), state.committed(), WAIT_MILLIS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new FsException(Errno.EINTR, "waiting for the source", e);
      }
    }
  }

  private boolean isMissing(Inode inode) {
    return state.isPending(inode.change()) || state.isPending(inode.contentChange());
  }

  /** Why the source does not have the changes of a node; null if that is not known yet. */
  private @Nullable Refusal refusal(Inode inode) {
    for (Change change : state.deferred().of(inode.number())) {
      Deferred.Entry entry = root(state.deferred().get(change.sequence()));
      if (entry != null) {
        return entry.refusal();
      }
    }
    return null;
  }

  /** The refused change that another one waits for, or that it is. */
  private Deferred.@Nullable Entry root(Deferred.@Nullable Entry entry) {
    Deferred.Entry at = entry;
    while (at != null && at.refusal() == null) {
      at = state.deferred().before(at.change(), Set.of());
    }
    return at;
  }

  // ---- what can be said about it

  private String path(long number) {
    try {
      Inode inode = state.find(number);
      return inode == null ? "" : step.path(inode.parent(), inode.name());
    } catch (FsException e) {
      return "";
    }
  }

  private String path(Change change) {
    try {
      return step.path(change);
    } catch (FsException e) {
      return "inode " + change.inode();
    }
  }

  /** Changes that the source refuses at the moment. */
  public long refusedCount() {
    boolean isStopped = refused != null && away == null && state.failure() == null;
    return (isStopped ? 1 : 0)
        + state.deferred().all().stream()
            .filter(entry -> entry.refusal() != null && awayNode(entry) == null)
            .count();
  }

  private @Nullable NodeAway awayNode(Deferred.Entry entry) {
    return committer.awayNode(entry.change().sequence());
  }

  /** The node that changes wait for; null if there is none. */
  public DrainStatus.@Nullable Away away() {
    NodeAway node = away;
    Failure waiting = refused;
    if (node != null && waiting != null) {
      return node.waiting(waiting.path(), state.waitingCount() + unclosed.size());
    }
    for (Deferred.Entry entry : state.deferred().all()) {
      NodeAway other = awayNode(entry);
      if (other != null) {
        return other.waiting(path(entry.change()), state.deferred().size() + unclosed.size());
      }
    }
    for (Map.Entry<Long, Exception> entry : unclosed.entrySet()) {
      NodeAway other = awayNode(entry.getValue());
      if (other != null) {
        return other.waiting(path(entry.getKey()), unclosed.size());
      }
    }
    return null;
  }

  public long oldestMillis() {
    try {
      Deferred.Entry passed = state.deferred().from(0);
      Change oldest = passed == null ? state.change(state.committed() + 1) : passed.change();
      return oldest == null ? 0 : Math.max(0, clock.millis() - oldest.head().madeMillis());
    } catch (FsException e) {
      return 0;
    }
  }

  public List<Failure> failures() {
    List<Failure> all = new ArrayList<>();
    Failure now = refused;
    if (now != null && away == null) {
      all.add(now);
    }
    addRefused(all);
    unclosed.forEach(
        (number, why) -> {
          if (all.size() < TOLD && awayNode(why) == null) {
            all.add(unclosed(path(number), why));
          }
        });
    for (Failure conflict : conflicts.last()) {
      if (all.size() < TOLD) {
        all.add(conflict);
      }
    }
    return all;
  }

  private void addRefused(List<Failure> all) {
    Map<Long, Integer> behind = new HashMap<>();
    int looked = 0;
    for (Deferred.Entry entry : state.deferred().all()) {
      Deferred.Entry root = entry.refusal() == null && looked++ < SCANNED ? root(entry) : null;
      if (root != null) {
        behind.merge(root.change().sequence(), 1, Integer::sum);
      }
    }
    for (Deferred.Entry entry : state.deferred().all()) {
      Refusal refusal = entry.refusal();
      if (all.size() >= TOLD) {
        return;
      }
      if (refusal != null && awayNode(entry) == null) {
        int count = behind.getOrDefault(entry.change().sequence(), 0);
        FsException answer =
            refusal.isOfNode() ? null : new FsException(refusal.errno(), refusal.reason());
        all.add(
            new Failure(path(entry.change()), refusal.reason(), answer, refusal.isAside(), count));
      }
    }
  }

  private static Failure unclosed(String path, Exception why) {
    return new Failure(
        path,
        why instanceof FsException e
            ? Failure.of(path, e).reason()
            : String.valueOf(why.getMessage()),
        null);
  }

  /** Paths of what the source does not have, the longest waiting first. */
  public List<String> waiting(int most) {
    Set<String> paths = new LinkedHashSet<>();
    try {
      for (Change change : state.changesAfter(-1, Math.max(most, SCANNED))) {
        if (paths.size() >= most) {
          break;
        }
        paths.add(path(change));
      }
      for (long number : unclosed.keySet()) {
        Inode inode = state.find(number);
        if (paths.size() < most && inode != null) {
          paths.add(step.path(inode.parent(), inode.name()));
        }
      }
      for (LiveFile file : live.all()) {
        try {
          Inode inode = state.find(file.number);
          if (paths.size() < most && inode != null && inode.is(Inode.WRITING)) {
            paths.add(step.path(inode.parent(), inode.name()));
          }
        } finally {
          live.release(file);
        }
      }
    } catch (FsException e) {
      log.warn("listing what waits: {}", e.getMessage());
    }
    return new ArrayList<>(paths);
  }

  @Override
  public void close() {
    closed = true;
    threads.forEach(Thread::interrupt);
    try {
      for (Thread thread : threads) {
        thread.join(CLOSE_MILLIS);
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
