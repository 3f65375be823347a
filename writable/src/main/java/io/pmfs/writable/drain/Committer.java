package io.pmfs.writable.drain;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeAway;
import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Deferred;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Refusal;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.steps.Completion;
import io.pmfs.writable.steps.ContentStep;
import io.pmfs.writable.steps.Copies;
import io.pmfs.writable.steps.NameStep;
import io.pmfs.writable.steps.Recording;
import io.pmfs.writable.steps.RenameStep;
import io.pmfs.writable.steps.SourceSteps;
import io.pmfs.writable.steps.Step;
import io.pmfs.writable.steps.Temporaries;
import io.pmfs.writable.steps.UnlinkedFiles;
import io.pmfs.writable.tree.SourceTree;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes the journal's changes at the source in order, one step at a time. A step is first made and
 * then recorded; each can be repeated, so a crash in between does no harm. A change that the source
 * refuses is {@link Deferred}, as is each later change that depends on it; the others proceed. Used
 * by one thread; the counters may be read by any.
 */
@SuppressWarnings("try")
public final class Committer {
  /** How many new files are created in one step, while others are copied ahead. */
  private static final int NEW_FILES = Window.COPIES_AHEAD / 2;

  /**
   * After so many first refusals of changes in a row, the source is asked if it is there at all.
   */
  private static final int MOST_IN_A_ROW = 16;

  private static final Logger log = LoggerFactory.getLogger(Committer.class);

  // LOCK ORDER: Committer.turn < OutputFile.lock < State.lock.
  private final ReentrantLock turn = new ReentrantLock(true);
  private final State state;
  private final Step step;
  private final Copies copies;
  private final Temporaries temporaries;
  private final Settlement settlement;
  private final LostData lost;
  private final UnreportedFailures unreported;
  private final ContentStep contentStep;
  private final RenameStep renameStep;
  private final SourceSteps steps;
  private final AtomicLong made = new AtomicLong();
  private final Window window;
  private volatile @Nullable Change current;
  private final Unsynced unsynced;
  private final Retries retries = new Retries();
  private final Map<Long, NodeAway> away = new ConcurrentHashMap<>();

  /** Whether the last step could retry a change; while a pass lasts, others are made between. */
  private boolean isRetrysTurn;

  /** Changes that the source refused for the first time since the last one that succeeded. */
  private int inARow;

  /** Changes up to this one are made one by one, because the source refuses one of them. */
  private long singlyTo;

  /** Changes whose steps may have been made at the source without being recorded. */
  private final Set<Long> attempted = new HashSet<>();

  /**
   * Whether a rename may be at the source that is not recorded. Then nothing else is made before it
   * is found, because directories may be elsewhere than the tables say.
   */
  private boolean isUnsure = true;

  Committer(
      Step step,
      Copies copies,
      Temporaries temporaries,
      Settlement settlement,
      LostData lost,
      UnlinkedFiles unlinked,
      UnreportedFailures unreported) {
    this.state = step.state();
    this.step = step;
    this.copies = copies;
    this.window = new Window(state, copies);
    this.temporaries = temporaries;
    this.settlement = settlement;
    this.unsynced = new Unsynced(state);
    this.lost = lost;
    this.unreported = unreported;
    Completion completion = new Completion(step);
    this.contentStep = new ContentStep(step, copies, temporaries, completion);
    NameStep nameStep = new NameStep(step, temporaries, unlinked, completion);
    this.renameStep = new RenameStep(step, copies, temporaries, unlinked, nameStep);
    this.steps = new SourceSteps(contentStep, nameStep, renameStep, completion);
  }

  /** Held while a step is made; who holds it keeps the deferred changes as they are. */
  ReentrantLock turn() {
    return turn;
  }

  /** Changes made at the source since this process started. */
  public long madeCount() {
    return made.get();
  }

  /** The change that is being made; null if there is none. */
  @Nullable
  public Change current() {
    return current;
  }

  public void begin() throws FsException {
    temporaries.begin();
    for (Deferred.Entry entry : state.deferred().all()) {
      step.times().leave(entry.change());
    }
    attempted.add(state.committed() + 1);
    attempted.addAll(temporaries.intended());
  }

  /** Records renames that an earlier process made but did not record, before anyone looks there. */
  public void finishRenames() throws FsException {
    step.begin(window.changes());
    try {
      finishDeferred();
    } finally {
      step.closeDirectories();
      step.tree().endMove();
    }
  }

  private void finishDeferred() throws FsException {
    for (Deferred.Entry entry : List.copyOf(state.deferred().all())) {
      if (entry.change() instanceof Change.Rename rename && isFound(rename)) {
        make(new Batch(List.of(rename), List.of(rename)));
        step.tree().endMove();
      }
    }
  }

  /** Whether a rename is at the source. One in a directory that may not be seen is not. */
  private boolean isFound(Change.Rename rename) throws FsException {
    try {
      return renameStep.isMade(rename);
    } catch (FsException e) {
      if (!Refusal.of(e).isAside()) {
        throw e;
      }
      return false;
    }
  }

  /** Whether an earlier process may have made the next step at the source. */
  public boolean isPerhapsMade(Change next) throws FsException {
    window.fill();
    return isRenameNext()
        || (next instanceof Change.Content content
            && !content.isFirst()
            && contentStep.isDone(content));
  }

  private boolean isRenameNext() {
    return !window.isEmpty() && Shortcut.of(window.free()).step() instanceof Change.Rename;
  }

  /** Makes the next step; returns false if there is nothing to do. */
  public boolean step() throws FsException {
    turn.lock();
    try {
      return stepInTurn();
    } finally {
      turn.unlock();
    }
  }

  private boolean stepInTurn() throws FsException {
    step.begin(window.changes());
    try {
      window.fill();
      if (isUnsure) {
        finishDeferred();
        boolean isNext = isRenameNext();
        boolean isDone = isNext && stepOnce();
        isUnsure = false;
        step.tree().setUnsure(false);
        if (isNext) {
          return isDone;
        }
      }
      isRetrysTurn = !isRetrysTurn || window.isEmpty();
      return (isRetrysTurn && tryAgain()) || stepOnce();
    } catch (FsException | RuntimeException | Error e) {
      step.closeDirectories();
      throw e;
    } finally {
      endMove();
    }
  }

  private void endMove() {
    step.tree().setUnsure(isUnsure);
    step.tree().endMove();
  }

  private boolean stepOnce() throws FsException {
    if (window.isEmpty()) {
      current = null;
      temporaries.tidy();
      step.times().touchLeft();
      step.closeDirectories();
      return false;
    }
    Change first = window.first();
    current = first;
    Batch batch = batch(first);
    if (batch == null && state.deferred().before(first, Set.of()) != null) {
      defer(first, null);
      return true;
    }
    if (!attempted.contains(first.sequence()) || !isRenameNext()) {
      window.copyAhead(); // Otherwise directories may be elsewhere than the tables say.
    }
    Batch next = batch == null ? run() : batch;
    step.setAgain(batch != null || next.steps().stream().anyMatch(this::isAttempted));
    attempted.add(first.sequence());
    next.steps().forEach(change -> attempted.add(change.sequence()));
    make(next);
    return true;
  }

  /** Merges the next change with deferred changes of its node; null if it is made alone. */
  private @Nullable Batch batch(Change first) throws FsException {
    List<Change> own =
        state.deferred().isEmpty() || first.sequence() <= singlyTo
            ? List.of()
            : state.deferred().of(first.inode());
    if (own.isEmpty()) {
      return null;
    }
    List<At> homes;
    try (State.Held held = state.hold()) {
      Inode inode = state.find(first.inode());
      homes = inode == null ? List.of() : step.homes().all(inode);
    }
    Batch batch = Batch.of(own, first, homes, state);
    if (batch == null) {
      return null;
    }
    Set<Long> except = sequences(own);
    boolean isFree = state.deferred().before(first, except) == null;
    for (Change change : batch.steps()) {
      isFree &= state.deferred().before(change, except) == null;
    }
    boolean isNothing =
        batch.steps().isEmpty() && !state.deferred().concerns(first.inode(), except);
    return isFree || isNothing ? batch : null;
  }

  /** The next changes that are made in one step, coalesced or side by side. */
  private Batch run() throws FsException {
    List<Change> files = newFiles();
    if (files.size() > 1) {
      return new Batch(files, files);
    }
    Shortcut shortcut = shortcut();
    Change change = shortcut.step();
    return new Batch(
        List.copyOf(window.changes().subList(0, shortcut.count())),
        change == null ? List.of() : List.of(change));
  }

  /** The next changes, as long as they are small new files that no later change touches. */
  private List<Change> newFiles() throws FsException {
    if (window.first().sequence() <= singlyTo || !state.deferred().isEmpty()) {
      return List.of();
    }
    List<Change> next = window.changes();
    int size = 0;
    while (size < Math.min(next.size(), NEW_FILES)
        && next.get(size) instanceof Change.Content content
        && contentStep.isNewFile(content)) {
      size++;
    }
    List<Change> files = next.subList(0, size);
    Map<Long, Integer> counts = new HashMap<>();
    if (size > 1) {
      next.forEach(change -> counts.merge(change.inode(), 1, Integer::sum));
    }
    return files.stream().takeWhile(change -> counts.getOrDefault(change.inode(), 0) == 1).toList();
  }

  private void make(Batch what) throws FsException {
    boolean wasUnsure = isUnsure;
    isUnsure |= what.steps().stream().anyMatch(change -> change instanceof Change.Rename);
    makeAndRecord(what);
    isUnsure = wasUnsure;
  }

  private void makeAndRecord(Batch what) throws FsException {
    List<Change> done = what.done();
    for (Change left : done) {
      if (left instanceof Change.Content content && !isMade(content, what.steps())) {
        copies.discard(content);
      }
    }
    unsynced.syncBefore(done);
    Recording recording = apply(what);
    if (recording == null) {
      return;
    }
    settle(what, recording);
  }

  /** Records what was made; an incomplete change is deferred to be completed. */
  private void settle(Batch what, Recording recording) throws FsException {
    List<Change> done = what.done();
    FsException failure = recording.failure();
    Deferred.Entry kept = failure == null ? null : kept(what, failure);
    List<Change> settled =
        done.stream()
            .filter(change -> kept == null || change.sequence() != kept.change().sequence())
            .toList();
    temporaries.settle(settled);
    Recording touched;
    try {
      touched = step.times().touched(done, sequences(done));
    } catch (FsException e) {
      step.recordNow(recording);
      step.tree().endMove();
      touched = otherwise(lastOf(done), done, e);
      if (touched == null) {
        return;
      }
    }
    boolean isNew = kept != null && isNew(kept);
    settlement.record(done, kept, recording.and(touched));
    made.addAndGet(settled.size());
    forget(settled);
    window.removeTo(lastOf(done).sequence());
    if (!state.deferred().isEmpty() && givesRoom(settled)) {
      retries.soon();
    }
    if (kept == null || failure == null) {
      inARow = 0;
    } else {
      incomplete(kept, isNew, failure);
    }
  }

  /** Forgets changes that the source has or that were given up; the caller has the turn. */
  void forget(Collection<Change> settled) {
    for (Change change : settled) {
      attempted.remove(change.sequence());
      step.actors().forget(change);
      temporaries.forget(change);
      away.remove(change.sequence());
    }
  }

  /** Handles a change that was made but not completed. */
  private void incomplete(Deferred.Entry kept, boolean isNew, FsException failure)
      throws FsException {
    step.tree().disturbed().leave(kept.change().sequence());
    if (isNew) {
      log.warn(
          "a change of {} is at the source, but not completed: {}",
          step.path(kept.change()),
          failure.getMessage());
      unreported.add(kept.change().inode(), failure);
      retries.soon();
      count(failure);
    }
  }

  /** Counts the first refusal of a change; throws it if the source does not answer any more. */
  private void count(FsException e) throws FsException {
    Refusal refusal = Refusal.of(e);
    boolean isCounted = !refusal.isAside() && !refusal.isOfRoom() && !refusal.isOfNode();
    if (isCounted && ++inARow > MOST_IN_A_ROW && !isAnswering()) {
      throw e;
    }
  }

  /** The change that must be completed later. */
  private Deferred.Entry kept(Batch what, FsException failure) throws FsException {
    Change change = what.steps().size() == 1 ? what.steps().get(0) : lastOf(what.done());
    if (state.deferred().size() >= Deferred.MOST && !state.deferred().contains(change.sequence())) {
      throw failure;
    }
    return new Deferred.Entry(change, Refusal.of(failure));
  }

  private boolean isNew(Deferred.Entry entry) {
    Deferred.Entry before = state.deferred().get(entry.change().sequence());
    return before == null || before.refusal() == null;
  }

  private static Set<Long> sequences(List<Change> changes) {
    Set<Long> sequences = new HashSet<>();
    changes.forEach(change -> sequences.add(change.sequence()));
    return sequences;
  }

  private static boolean isMade(Change.Content content, List<Change> steps) {
    return steps.stream().anyMatch(made -> made.sequence() == content.sequence());
  }

  private static boolean givesRoom(List<Change> done) {
    return done.stream()
        .anyMatch(change -> change instanceof Change.Removal || change instanceof Change.Content);
  }

  // ---- changes that the source lacks

  public Retries retries() {
    return retries;
  }

  /** Retries the next deferred change if a pass is due; returns false if not. */
  private boolean tryAgain() throws FsException {
    Deferred deferred = state.deferred();
    while (retries.isRunning(!deferred.isEmpty(), state.head())) {
      Deferred.Entry entry = deferred.from(retries.next());
      if (entry == null || entry.change().sequence() > retries.last()) {
        retries.end();
        temporaries.tidy();
        return false;
      }
      long sequence = entry.change().sequence();
      retries.behind(sequence);
      boolean isWanted =
          (!entry.isAside() || retries.isAsked(sequence)) && !isBegunTogether(entry.change());
      if (isWanted && deferred.before(entry.change(), Set.of()) == null) {
        current = entry.change();
        List<Change> own = deferred.of(entry.change().inode());
        int at = own.indexOf(entry.change());
        Shortcut shortcut = Shortcut.of(own.subList(Math.max(0, at), own.size()));
        boolean isRun =
            at == 0
                && !Batch.isPerhapsMade(entry.change(), state)
                && isFree(own.subList(0, shortcut.count()));
        Change run = shortcut.step();
        int before = deferred.size();
        step.setAgain(true);
        make(
            isRun
                ? new Batch(
                    List.copyOf(own.subList(0, shortcut.count())),
                    run == null ? List.of() : List.of(run))
                : new Batch(List.of(entry.change()), List.of(entry.change())));
        if (deferred.size() < before) {
          retries.succeeded();
        }
        return true;
      }
    }
    return false;
  }

  /** Whether a later content of the file may have its name already: then both are made together. */
  private boolean isBegunTogether(Change change) throws FsException {
    for (Change later : window.changes()) {
      if (later.inode() == change.inode()
          && later instanceof Change.Content content
          && temporaries.isIntended(content)) {
        return true;
      }
    }
    return false;
  }

  /** Whether these changes depend on no other change. */
  private boolean isFree(List<Change> changes) {
    Set<Long> except = sequences(changes);
    return changes.stream().allMatch(change -> state.deferred().before(change, except) == null);
  }

  /** Defers a change that the source refuses, or that depends on a refused one. */
  private void defer(Change change, @Nullable Refusal refusal) throws FsException {
    if (state.deferred().size() >= Deferred.MOST && !state.deferred().contains(change.sequence())) {
      throw new FsException(
          refusal == null ? Errno.EIO : refusal.errno(),
          "%,d changes wait; no further ones are tried until some of them succeed"
              .formatted(state.deferred().size()));
    }
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      update.defer(change, refusal);
      update.committed(change.sequence());
      update.commit();
    }
    if (!window.isEmpty() && window.first().sequence() == change.sequence()) {
      window.removeTo(change.sequence());
    }
  }

  /** Handles a change that the source refused. */
  private void refuse(Change change, FsException e) throws FsException {
    Refusal refusal = Refusal.of(e);
    Deferred.Entry before = state.deferred().get(change.sequence());
    boolean isNew = before == null || before.refusal() == null;
    if (isNew) {
      count(e);
    }
    NodeAway node = NodeAway.of(e);
    if (node != null) {
      away.put(change.sequence(), node);
    } else {
      away.remove(change.sequence());
    }
    temporaries.undo(change);
    step.tree().disturbed().leave(change.sequence());
    if (before != null && refusal.equals(before.refusal())) {
      return;
    }
    defer(change, refusal);
    if (isNew) {
      log.warn(
          "a change of {} failed at the source: {}; {}",
          step.path(change),
          refusal.reason(),
          refusal.isAside() ? "set aside" : "it will be retried");
      unreported.add(change.inode(), e);
      retries.soon();
    }
  }

  /** Whether an error concerns the source as a whole: then nothing can proceed. */
  private boolean isSourceGone(FsException e) {
    boolean isPossible =
        switch (e.errno()) {
          case EINTR -> true;
          case ESTALE,
              ENOTCONN,
              ESHUTDOWN,
              ENODEV,
              EIO,
              EHOSTDOWN,
              EREMOTEIO,
              ETIMEDOUT,
              ENETDOWN,
              ENETUNREACH,
              ECONNREFUSED,
              EHOSTUNREACH ->
              NodeAway.of(e) == null;
          default -> false;
        };
    return isPossible && (e.errno() == Errno.EINTR || !isAnswering());
  }

  private boolean isAnswering() {
    try {
      step.tree().rootStatus();
      return true;
    } catch (FsException gone) {
      return false;
    }
  }

  /** The unreachable node that a change waits for; null if there is none. */
  @Nullable
  public NodeAway awayNode(long sequence) {
    return away.get(sequence);
  }

  private static Change lastOf(List<Change> changes) {
    return changes.get(changes.size() - 1);
  }

  /** Most changes are the only ones of their file and need no search. */
  private Shortcut shortcut() throws FsException {
    Change first = window.first();
    List<Change> next = window.changes();
    for (int i = 1; i < next.size() && first.sequence() > singlyTo; i++) {
      if (next.get(i).inode() == first.inode()) {
        return Shortcut.of(next.subList(0, Math.min(window.free().size(), indexOfRemoval())));
      }
    }
    return new Shortcut(1, first);
  }

  /**
   * Limits the window if a change may be at the source already and a later one removes its name:
   * then both are made.
   */
  private int indexOfRemoval() throws FsException {
    int limit = window.changes().size();
    for (int made = 0; made < limit; made++) {
      Change change = window.changes().get(made);
      if (isAttempted(change) || (made == 0 && isIntended(change))) {
        int removal = indexOfRemoval(change, made + 1);
        limit = removal < limit && isThere(change) ? removal : limit;
      }
    }
    return limit;
  }

  private int indexOfRemoval(Change change, int from) {
    List<Change> next = window.changes();
    for (int i = from; i < next.size(); i++) {
      if (next.get(i) instanceof Change.Removal && next.get(i).inode() == change.inode()) {
        return i;
      }
    }
    return next.size();
  }

  private boolean isAttempted(Change change) {
    return attempted.contains(change.sequence());
  }

  private boolean isIntended(Change change) throws FsException {
    return change instanceof Change.Content && temporaries.isIntended(change);
  }

  /** Whether the source has something under the name that a change makes. */
  private boolean isThere(Change change) throws FsException {
    for (At name : change.names()) {
      try (SourceTree.Directory directory = step.openIfThere(name.directory())) {
        if (directory != null && Step.find(directory, name.name()) != null) {
          return true;
        }
      }
    }
    return false;
  }

  /**
   * Makes changes.
   *
   * @return null if they were not made, or if something else is to be tried instead
   */
  private @Nullable Recording apply(Batch what) throws FsException {
    List<Change> done = what.done();
    Recording recording = Recording.NOTHING;
    if (what.isOfNewFiles()) {
      return applyNewFiles(what);
    }
    for (Change change : what.steps()) {
      try {
        recording = recording.and(makeOrLookAgain(change));
      } catch (FsException e) {
        if (change instanceof Change.Rename rename && isFound(rename)) {
          // Others look there: it is recorded before anything else is made.
          recording = recording.and(renameStep.apply(rename));
        } else {
          step.recordNow(recording);
          step.tree().endMove();
          return otherwise(change, done, e);
        }
      }
    }
    return recording;
  }

  /** Makes a change; once again if a file was replaced or changed just now, which is no refusal. */
  private Recording makeOrLookAgain(Change change) throws FsException {
    try {
      return steps.make(change);
    } catch (FsException e) {
      if (e.errno() != Errno.ESTALE) {
        throw e;
      }
      log.debug("a change of {} is made again: {}", step.path(change), e.getMessage());
    }
    step.closeDirectories();
    if (!(change instanceof Change.Rename)) {
      step.tree().endMove(); // A rename may be made already.
    }
    step.setAgain(true);
    return steps.make(change);
  }

  /** If that fails, each file is created by itself, which finds names that were already given. */
  private @Nullable Recording applyNewFiles(Batch what) throws FsException {
    List<Change.Content> files = new ArrayList<>();
    what.steps().forEach(change -> files.add((Change.Content) change));
    try {
      return contentStep.appear(files);
    } catch (FsException e) {
      step.tree().endMove();
      if (state.failure() != null || isSourceGone(e)) {
        throw e;
      }
      log.debug("{} new files are made one by one: {}", files.size(), e.getMessage());
      singlyTo = lastOf(what.done()).sequence();
      return null;
    }
  }

  private @Nullable Recording otherwise(Change change, List<Change> done, FsException e)
      throws FsException {
    if (state.failure() != null || isSourceGone(e)) {
      throw e;
    }
    boolean isRun = done.size() > 1 && !state.deferred().contains(done.get(0).sequence());
    if (change instanceof Change.Content) {
      try {
        if (lost.mend(change.inode())) {
          window.clear();
          return null;
        }
      } catch (FsException noData) {
        if (isRun) {
          singlyTo = lastOf(done).sequence();
          return null;
        }
        refuse(firstOf(change, done), noData);
        deferFirst(done);
        return null;
      }
    }
    boolean isForbidden = e.errno() == Errno.EPERM || e.errno() == Errno.EACCES;
    if (isForGood(change, e.errno()) && done.size() == 1) {
      return step.givenUp(change, String.valueOf(e.getMessage()));
    }
    if (isForbidden && !isInForeign(change) && step.actors().useDaemon(change)) {
      return null;
    }
    if (isRun || (isForGood(change, e.errno()) && lastOf(done).sequence() > singlyTo)) {
      singlyTo = lastOf(done).sequence();
      return null;
    }
    refuse(firstOf(change, done), e);
    deferFirst(done);
    return null;
  }

  /** Whether a change is one of a directory that another program made, or of a name in it. */
  private boolean isInForeign(Change change) throws FsException {
    boolean isForeign = step.tree().isForeign(change.inode());
    for (At name : change.names()) {
      isForeign |= step.tree().isForeign(name.directory());
    }
    return isForeign;
  }

  /** The change that is reported as refused: the longest waiting of those made together. */
  private Change firstOf(Change change, List<Change> done) {
    return state.deferred().contains(done.get(0).sequence()) ? done.get(0) : change;
  }

  /** Defers the next change too, because it depends on those that it was merged with. */
  private void deferFirst(List<Change> done) throws FsException {
    if (!window.isEmpty() && lastOf(done).sequence() == window.first().sequence()) {
      defer(window.first(), null);
    }
  }

  /**
   * Whether the source can never make a change, so that later changes proceed without it. Contents
   * and names are retried forever, because they exist nowhere else: also a link, whose file may
   * lose its other names.
   */
  private static boolean isForGood(Change change, Errno errno) {
    boolean isUnable =
        switch (errno) {
          case EPERM, EINVAL, EOPNOTSUPP -> true;
          default -> false;
        };
    if (change instanceof Change.SetExtended) {
      return isUnable
          || switch (errno) {
            case ENAMETOOLONG, E2BIG, ENOSPC, ERANGE -> true;
            default -> false;
          };
    }
    return isUnable
        && (change instanceof Change.SetAttributes || change instanceof Change.MakeNode);
  }
}
