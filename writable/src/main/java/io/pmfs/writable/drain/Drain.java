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
import io.pmfs.writable.steps.Step;
import io.pmfs.writable.steps.Temporaries;
import io.pmfs.writable.steps.UnlinkedFiles;
import io.pmfs.writable.tree.OutputTree;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs the committer while there is work, retries what the source refuses, and copies growing open
 * files to the source in pieces. Thread-safe.
 */
@SuppressWarnings("try")
public final class Drain implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Drain.class);

  private static final long FIRST_PAUSE_MILLIS = 100;
  private static final long LONGEST_PAUSE_MILLIS = 30_000;
  private static final long IDLE_MILLIS = 1000;
  private static final long CLOSE_MILLIS = 5000;
  private static final long WAIT_MILLIS = 200;

  /** Longer than the pause of {@link io.pmfs.table.TableStore} after a failure. */
  private static final long REOPEN_MILLIS = 1500;

  /** How often a drain looks whether it is known which files of an earlier process are open. */
  private static final long FORMER_POLL_MILLIS = 50;

  private final State state;
  private final OutputData data;
  private final WritableSettings settings;
  private final Conflicts conflicts = new Conflicts();
  private final UnreportedFailures unreported;
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

  /** Why nothing is written to the source; null if changes are made. */
  private volatile @Nullable Stop stopped;

  private final AtomicLong refusals = new AtomicLong();
  private volatile boolean isHurried;
  private @Nullable Due due;

  /**
   * Brings a mount's changes to the source.
   *
   * @param mount part of the names of unfinished copies
   */
  public Drain(
      State state, OutputTree tree, OutputData data, WritableSettings settings, String mount) {
    this.state = state;
    this.data = data;
    this.settings = settings;
    DataPlaces places = data.places();
    Actors actors = new Actors(tree.source().calls());
    unreported = new UnreportedFailures(state);
    pace = new Pace(settings.drainBytesPerSecond(), System::nanoTime);
    step = new Step(state, tree.source(), actors, conflicts, settings.hostName());
    Temporaries temporaries = new Temporaries(state, tree.source(), mount);
    copies =
        new Copies(state, tree.source(), places, temporaries, actors, pace, settings.copiers());
    lost = new LostData(state, places, data.files(), step);
    unclosed = new Unclosed(state, data.files(), data.handles(), lost);
    UnlinkedFiles unlinked = new UnlinkedFiles(state, data.files(), tree.extended());
    Settlement settlement = new Settlement(state, places, tree, temporaries);
    committer = new Committer(step, copies, temporaries, settlement, lost, unlinked, unreported);
    refused =
        new Refused(
            step, data.files(), unclosed, unreported, committer, settlement, copies, temporaries);
    report =
        new DrainReport(state, data.files(), step, committer, conflicts, unclosed, () -> stopped);
  }

  /** Finds what earlier processes left, and finishes steps that one of them may have made. */
  public void begin() throws FsException {
    committer.begin();
    try {
      committer.finishRenames();
      Change next = state.change(state.committed() + 1);
      if (next != null && committer.isPerhapsMade(next)) {
        attempt();
      }
    } catch (FsException e) {
      log.info("the next change is not at the source yet: {}", e.getMessage());
    }
  }

  // ---- its parts

  public Conflicts conflicts() {
    return conflicts;
  }

  public UnreportedFailures unreported() {
    return unreported;
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

  /** Makes a step, and handles a refusal as the loop does. */
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

  public interface Task {
    void run() throws FsException;
  }

  private record Due(long sequence, Task task) {}

  /** Runs a task once the source has all changes up to this one: now, or in a later step. */
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
      log.debug("next attempt in {} ms", pause, e);
    } else if (stateFailure != null) {
      log.warn("the state cannot be recorded; changes wait: {}", stateFailure);
    } else {
      log.warn(
          "a change of {} failed at the source: {}; it will be retried", path, failure.reason());
      if (change != null && cause != null) {
        unreported.add(change.inode(), cause);
      }
    }
    if (stateFailure == null && cause == null) {
      log.error("a step at the source failed", e);
    }
    state.wake();
  }

  /** Retries soon, because a node that was away is back. */
  public void hurry() {
    isHurried = true;
    tryAgain();
  }

  /** Makes the next steps retry deferred changes. */
  public void tryAgain() {
    committer.retries().ask();
  }

  /**
   * Pauses, except while a caller of {@link #drain} waits: it gets an error after the second
   * refusal, so pauses are short then.
   *
   * @return the next pause; 0 if the thread must end
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

  /** Announces the present content of files that only grow. */
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
      // A failed state is reopened after a pause.
      Thread.sleep(Math.max(0, Math.min(timeoutMillis, REOPEN_MILLIS)));
      unclosed.tryAll();
    }
    while (unclosed.hasFormer() && !closed && millisSince(begin) < timeoutMillis) {
      Thread.sleep(FORMER_POLL_MILLIS);
      unclosed.tryAll();
    }
    long until = state.head();
    long refusedBefore = refusals.get();
    isHurried = true;
    long pass = committer.retries().ask();
    while (true) {
      // In this order: what is left after the pass was tried in it.
      boolean hasEnded = committer.retries().hasEnded(pass);
      long committed = state.committed();
      if (committed >= until && !isDeferred(until)) {
        break;
      }
      long left = timeoutMillis - millisSince(begin);
      boolean isStopped = stopped != null && refusals.get() > refusedBefore + 1;
      boolean isTried = committed >= until && hasEnded;
      if (left <= 0 || closed || isStopped || isTried) {
        return false;
      }
      state.awaitChange(state.head(), committed, Math.min(left, WAIT_MILLIS));
    }
    tidyUp();
    return conflicts.givenUpCount() == 0 && unclosed.count() == 0;
  }

  private static long millisSince(long begin) {
    return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin);
  }

  /** Removes the last traces of pmfs from the source. */
  private void tidyUp() {
    try {
      tidy();
    } catch (FsException e) {
      log.debug("tidying: {}", e.getMessage());
    }
  }

  public void tidy() throws FsException {
    while (!closed && (data.room().collect() || data.room().collectElsewhere())) {
      log.trace("removed data files");
    }
    data.room().tidyAtSource();
  }

  private boolean isDeferred(long until) {
    Deferred.Entry first = state.deferred().from(0);
    return first != null && first.change().sequence() <= until;
  }

  /**
   * Waits until the source has the changes of a node.
   *
   * @throws FsException with the source's error, if it refuses one of them or one that they depend
   *     on
   */
  public void await(Inode inode) throws FsException {
    long refusedBefore = refusals.get();
    isHurried = true;
    long pass = 0;
    while (state.isPending(inode)) {
      Stop now = stopped;
      if (now != null && refusals.get() > refusedBefore) {
        unreported.forget(inode.number());
        FsException cause = now.failure().cause();
        String reason = now.failure().reason();
        throw cause == null
            ? new FsException(Errno.EIO, reason)
            : new FsException(cause.errno(), "the source: " + reason, cause);
      }
      Refusal refusal = refusal(inode);
      boolean isTried = pass > 0 && committer.retries().hasEnded(pass);
      if (refusal != null && (refusal.isAside() || isTried)) {
        unreported.forget(inode.number());
        throw refusal.toException();
      }
      if (refusal != null && pass == 0) {
        pass = committer.retries().ask(); // Others' refused changes are not retried for this file.
      }
      if (closed) {
        throw new FsException(Errno.EIO, "the mount ended before the change reached the source");
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

  /** Why the source lacks changes of a node or of names in it; null if that is not known yet. */
  private @Nullable Refusal refusal(Inode inode) {
    for (long sequence : state.deferred().concerning(inode.number())) {
      Deferred.Entry entry = report.root(state.deferred().get(sequence));
      if (entry != null) {
        return entry.refusal();
      }
    }
    return null;
  }

  // ---- status

  public DrainStatus status() {
    return report.status(pace, data.places().usedBytes());
  }

  /** Acknowledges the conflicts: they are no longer reported; returns what they were. */
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
    state.sync(); // So that it is not reported again after a power failure.
    return before;
  }

  /** Paths of changes that the source lacks, the oldest first. */
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
