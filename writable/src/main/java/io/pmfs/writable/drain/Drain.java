package io.pmfs.writable.drain;

import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.DrainStatus.Failure;
import io.pmfs.writable.NodeAway;
import io.pmfs.writable.WritableSettings;
import io.pmfs.writable.data.OpenFiles;
import io.pmfs.writable.data.OutputData;
import io.pmfs.writable.data.OutputFiles;
import io.pmfs.writable.drain.DrainReport.Stop;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Deferred;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Refusal;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import io.pmfs.writable.places.DataPlaces;
import io.pmfs.writable.steps.Actors;
import io.pmfs.writable.steps.Conflicts;
import io.pmfs.writable.steps.Copies;
import io.pmfs.writable.steps.Pace;
import io.pmfs.writable.steps.Remains;
import io.pmfs.writable.steps.Step;
import io.pmfs.writable.steps.Temporaries;
import io.pmfs.writable.tree.OutputTree;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lets the committer work while there is something to do, tries again what the source refuses, and
 * brings files that stay open and grow there in pieces. Safe for use by many threads.
 */
@SuppressWarnings("try") // What is held is not otherwise used.
public final class Drain implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Drain.class);

  private static final long FIRST_PAUSE_MILLIS = 100;
  private static final long LONGEST_PAUSE_MILLIS = 30_000;
  private static final long IDLE_MILLIS = 1000;
  private static final long CLOSE_MILLIS = 5000;
  private static final long WAIT_MILLIS = 200;

  /** Longer than the pause of {@link io.pmfs.table.TableStore} after a failure. */
  private static final long REOPEN_MILLIS = 1500;

  private final State state;
  private final OutputData data;
  private final WritableSettings settings;
  private final Conflicts conflicts = new Conflicts();
  private final Untold untold;
  private final Unclosed unclosed;
  private final Pace pace;
  private final Step step;
  private final Copies copies;
  private final LostData lost;
  private final Committer committer;
  private final Refused refused;
  private final DrainReport report;
  private final List<Thread> threads = new ArrayList<>();
  private volatile boolean closed;

  /** Why nothing is made at the source; null if changes are made. */
  private volatile @Nullable Stop stopped;

  private final AtomicLong refusals = new AtomicLong();
  private volatile boolean isHurried;
  private @Nullable Due due;

  /**
   * The way of a mount's changes to the source.
   *
   * @param mount in the names of unfinished copies
   */
  public Drain(
      State state, OutputTree tree, OutputData data, WritableSettings settings, String mount) {
    this.state = state;
    this.data = data;
    this.settings = settings;
    DataPlaces places = data.places();
    Actors actors = new Actors(tree.source().calls());
    untold = new Untold(state);
    unclosed = new Unclosed(state, data.files());
    pace = new Pace(settings.drainBytesPerSecond(), System::nanoTime);
    step = new Step(state, tree.source(), actors, conflicts, settings.hostName());
    Temporaries temporaries = new Temporaries(state, tree.source(), mount);
    copies =
        new Copies(state, tree.source(), places, temporaries, actors, pace, settings.copiers());
    lost = new LostData(state, places, data.files(), step);
    Remains remains = new Remains(state, data.files(), tree.extended());
    Settlement settlement = new Settlement(state, places, tree, temporaries);
    committer = new Committer(step, copies, temporaries, settlement, lost, remains, untold);
    refused = new Refused(step, data.files(), untold, committer.again());
    report =
        new DrainReport(state, data.files(), step, committer, conflicts, unclosed, () -> stopped);
  }

  /** Finds what former processes left, and finishes steps that one of them may have made. */
  public void begin() throws FsException {
    committer.begin();
    try {
      committer.finishRenames();
      Change next = state.change(state.committed() + 1);
      if (next != null && committer.isPerhapsMade(next)) {
        attempt();
      }
    } catch (FsException e) {
      log.info("the source has not taken the next change yet: {}", e.getMessage());
    }
  }

  // ---- its parts

  public Conflicts conflicts() {
    return conflicts;
  }

  public Untold untold() {
    return untold;
  }

  public Unclosed unclosed() {
    return unclosed;
  }

  public LostData lost() {
    return lost;
  }

  public Refused refused() {
    return refused;
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
        pause = pauseAfter(pause);
        if (pause == 0) {
          return;
        }
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
    Stop before = stopped;
    if (before != null && isDone) {
      log.info("the source accepts changes again, after {}", before.failure().reason());
      stopped = null;
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
    String path = change == null ? "" : report.path(change);
    String stateFailure = state.failure();
    FsException cause = e instanceof FsException answer && stateFailure == null ? answer : null;
    boolean isNew = stopped == null;
    Failure failure;
    if (stateFailure != null) {
      failure = new Failure(path, "the state is not recorded: " + stateFailure, null);
    } else if (cause != null) {
      failure = Failure.of(path, cause);
    } else {
      String text = e instanceof Error ? e.toString() : String.valueOf(e.getMessage());
      failure = new Failure(path, text, null);
    }
    stopped = new Stop(failure, cause == null ? null : NodeAway.of(cause));
    refusals.incrementAndGet();
    if (!isNew) {
      log.debug("not made for another {} ms", pause, e);
    } else if (stateFailure != null) {
      log.warn("the state is not recorded, and changes wait: {}", stateFailure);
    } else {
      log.warn(
          "a change of {} is not at the source: {}; it is tried again", path, failure.reason());
      if (change != null && cause != null) {
        untold.add(change.inode(), cause);
      }
    }
    if (stateFailure == null && cause == null) {
      log.error("a step at the source failed", e);
    }
    state.wake();
  }

  /** What failed may succeed now: a node that was away is back. */
  public void hurry() {
    isHurried = true;
    tryAgain();
  }

  /** What the source does not have is tried again in the next steps. */
  public void tryAgain() {
    committer.again().ask();
  }

  /**
   * Pauses unless a caller of {@link #drain} waits: who waits is told after a second refusal, so
   * the pauses are short again then.
   *
   * @return the next pause; 0 if the thread is to end
   */
  private long pauseAfter(long millis) {
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
    try {
      while (!closed && System.nanoTime() - end < 0 && !isHurried) {
        Thread.sleep(Math.min(50, millis));
      }
    } catch (InterruptedException e) {
      return 0;
    }
    long next = isHurried ? FIRST_PAUSE_MILLIS : Math.min(LONGEST_PAUSE_MILLIS, 2 * millis);
    isHurried = false;
    return closed ? 0 : next;
  }

  private void tidyLoop() {
    long pieceNanos = TimeUnit.MILLISECONDS.toNanos(settings.pieceMillis());
    long piecesAt = System.nanoTime() + pieceNanos;
    while (!closed) {
      try {
        tidy();
        unclosed.tryAll();
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
    for (long number : data.files().numbers()) {
      try {
        announcePiece(number);
      } catch (FsException e) {
        log.debug("inode {} does not reach the source yet: {}", number, e.getMessage());
      }
    }
  }

  private void announcePiece(long number) throws FsException {
    Inode before = state.find(number);
    if (before == null || !before.is(Inode.WRITING) || before.isRemoved()) {
      return;
    }
    try (OutputFiles.Locked locked = data.files().tryLock(number)) {
      Inode inode = locked == null ? null : state.find(number);
      if (locked != null
          && inode != null
          && inode.is(Inode.WRITING)
          && locked.file().hasGrown(inode)) {
        data.files().announce(locked.file(), OpenFiles.owner(inode));
        data.contents().bring(locked.file());
      }
    }
  }

  // ---- waiting for the source

  public boolean drain(long timeoutMillis) throws InterruptedException {
    long begin = System.nanoTime();
    if (!unclosed.tryAll()) {
      // A state that failed is opened again after a pause.
      Thread.sleep(Math.max(0, Math.min(timeoutMillis, REOPEN_MILLIS)));
      unclosed.tryAll();
    }
    long until = state.head();
    long refusedBefore = refusals.get();
    isHurried = true;
    long pass = committer.again().ask();
    while (state.committed() < until || isDeferred(until)) {
      long left = timeoutMillis - TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin);
      boolean isStopped = stopped != null && refusals.get() > refusedBefore + 1;
      boolean isTried = state.committed() >= until && committer.again().hasEnded(pass);
      if (left <= 0 || closed || isStopped || isTried) {
        return false;
      }
      state.awaitChange(state.head(), state.committed(), Math.min(left, WAIT_MILLIS));
    }
    tidyUp();
    return conflicts.givenUpCount() == 0 && unclosed.count() == 0;
  }

  /** Nothing of pmfs stays at the source. */
  private void tidyUp() {
    try {
      tidy();
    } catch (FsException e) {
      log.debug("tidying: {}", e.getMessage());
    }
  }

  /** Removes data files without use. */
  public void tidy() throws FsException {
    while (!closed && data.room().collect()) {
      log.trace("removed data files");
    }
    data.room().tidyAtSource();
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
      Stop now = stopped;
      if (now != null && refusals.get() > refusedBefore) {
        untold.forget(inode.number());
        FsException cause = now.failure().cause();
        String reason = now.failure().reason();
        throw cause == null
            ? new FsException(Errno.EIO, reason)
            : new FsException(cause.errno(), "the source: " + reason, cause);
      }
      Refusal refusal = refusal(inode);
      if (refusal != null && (refusal.isAside() || committer.again().hasEnded(pass))) {
        untold.forget(inode.number());
        throw refusal.toException();
      }
      if (closed) {
        throw new FsException(Errno.EIO, "the mount ends before the source has the change");
      }
      step.tree().looks().checkInterrupted();
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
      Deferred.Entry entry = report.root(state.deferred().get(change.sequence()));
      if (entry != null) {
        return entry.refusal();
      }
    }
    return null;
  }

  // ---- what can be said about it

  public DrainStatus status() {
    return report.status(pace, data.places().usedBytes());
  }

  /** The user knows of the conflicts: they are not reported any more; returns what they were. */
  public DrainStatus acknowledge() throws FsException {
    DrainStatus before;
    try (State.Held held = state.hold()) {
      before = report.conflicts(pace, data.places().usedBytes());
      State.Update update = state.update();
      state.scan(
          Tables.CONFLICTS,
          new byte[0],
          (key, value) -> {
            update.delete(Tables.CONFLICTS, key);
            return true;
          });
      update.afterwards(conflicts::acknowledge);
      update.commit();
    }
    state.sync(); // It is not told again after a power cut.
    return before;
  }

  /** Paths of what the source does not have, the longest waiting first. */
  public List<String> waiting(int most) {
    return report.waiting(most);
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
    copies.close();
  }
}
