package io.pmfs.writable;

import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.writable.Step.Recording;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Makes the journal's changes at the source, in their order, one step at a time. A step is first
 * made at the source and then recorded, and each can be made twice, so a death in between does no
 * harm. Used by one thread; the figures are for all.
 */
@SuppressWarnings("try") // What is held is not otherwise used.
final class Committer {
  /** So many changes are looked at for what can be left out, and for what can be copied ahead. */
  private static final int WINDOW = 512;

  private static final int COPIES_AHEAD = 32;

  private final State state;
  private final Step step;
  private final Copies copies;
  private final Room room;
  private final Extended extended;
  private final Waiting waiting;
  private final LostData lost;
  private final ContentStep contentStep;
  private final Change.Cases<Recording> steps;
  private final AtomicLong made = new AtomicLong();
  private final List<Change> window = new ArrayList<>();
  private volatile @Nullable Change current;
  private final Unsynced unsynced = new Unsynced();
  private long syncedTo;

  /** Up to this change each is made for itself, as the source refuses one of them. */
  private long singlyTo;

  /** Whether the window has contents that could be copied ahead. */
  private boolean isMoreToCopy;

  Committer(
      State state,
      Step step,
      Copies copies,
      Room room,
      Extended extended,
      Waiting waiting,
      LostData lost,
      Remains remains) {
    this.state = state;
    this.step = step;
    this.copies = copies;
    this.room = room;
    this.extended = extended;
    this.waiting = waiting;
    this.lost = lost;
    this.contentStep = new ContentStep(step, copies);
    this.steps =
        new SourceSteps(
            contentStep,
            new NameStep(step, copies, remains),
            new RenameStep(step, copies, remains));
  }

  /** Changes made at the source since this process started. */
  long madeCount() {
    return made.get();
  }

  /** What is being done; null if nothing is. */
  @Nullable Change current() {
    return current;
  }

  /** Whether a former process may have made the next change at the source. */
  boolean isPerhapsMade(Change next) throws FsException {
    return next instanceof Change.Rename
        || (next instanceof Change.Content content
            && !content.isFirst()
            && contentStep.isDone(content));
  }

  /** Makes the next step; returns false if there is none. */
  boolean step() throws FsException {
    step.begin(window);
    try {
      copies.begin(state.committed());
      return stepOnce();
    } catch (FsException | RuntimeException | Error e) {
      step.closeDirectories();
      throw e;
    } finally {
      step.tree.endMove();
    }
  }

  private boolean stepOnce() throws FsException {
    fillWindow();
    if (window.isEmpty()) {
      current = null;
      step.closeDirectories();
      return false;
    }
    current = window.get(0);
    Shortcut shortcut = shortcut();
    copyAhead();
    Change change = shortcut.step();
    List<Change> done = List.copyOf(window.subList(0, shortcut.count()));
    for (Change left : done) {
      if (left instanceof Change.Content content
          && (change == null || left.sequence() != change.sequence())) {
        copies.discard(content);
      }
    }
    syncBefore(done);
    Recording recording = change == null ? Recording.NOTHING : apply(change, done);
    if (recording == null) {
      return true;
    }
    copies.settle(done);
    record(done, recording);
    made.addAndGet(done.size());
    window.subList(0, done.size()).clear();
    return true;
  }

  /**
   * The source is never ahead of what a power cut leaves of the journal; and of steps on the same
   * file or name, only the last may be lost from the records.
   */
  private void syncBefore(List<Change> done) throws FsException {
    boolean isSynced = lastOf(done).sequence() <= syncedTo;
    for (Change change : done) {
      isSynced = isSynced && !unsynced.concerns(change, isDirectory(change));
    }
    if (!isSynced) {
      long head = state.head();
      state.sync();
      syncedTo = head;
      unsynced.clear();
    }
    for (Change change : done) {
      unsynced.add(change);
    }
  }

  private boolean isDirectory(Change change) throws FsException {
    Inode inode = state.find(change.inode());
    return inode != null && inode.isDirectory();
  }

  private void fillWindow() throws FsException {
    long last = window.isEmpty() ? state.committed() : lastOf(window).sequence();
    if (!window.isEmpty() && window.get(0).sequence() != state.committed() + 1) {
      window.clear();
      last = state.committed();
    }
    if (window.size() < WINDOW / 2 && last < state.head()) {
      window.addAll(state.changesAfter(last, WINDOW - window.size()));
      isMoreToCopy = true;
    }
  }

  private static Change lastOf(List<Change> changes) {
    return changes.get(changes.size() - 1);
  }

  /** Most changes are the only ones of their file, and need no search. */
  private Shortcut shortcut() {
    Change first = window.get(0);
    for (int i = 1; i < window.size() && first.sequence() > singlyTo; i++) {
      if (window.get(i).inode() == first.inode()) {
        return Shortcut.of(window);
      }
    }
    return new Shortcut(1, first);
  }

  /** Begins copies of contents that will be needed, as far as that is known. */
  private void copyAhead() throws FsException {
    if (!isMoreToCopy || copies.aheadCount() > COPIES_AHEAD / 2) {
      return;
    }
    Map<Long, Long> last = new HashMap<>();
    for (Change change : window) {
      if (change instanceof Change.Content || change instanceof Change.Unlink) {
        last.put(change.inode(), change.sequence());
      }
    }
    List<Change.Content> wanted = new ArrayList<>();
    int most = COPIES_AHEAD - copies.aheadCount();
    for (int i = 0; i < window.size() && wanted.size() < most; i++) {
      if (window.get(i) instanceof Change.Content content
          && !content.isLost()
          && content.sequence() == last.getOrDefault(content.inode(), 0L)
          && !copies.isAhead(content.sequence())) {
        Inode inode = state.find(content.inode());
        if (inode != null && !ContentStep.isAppended(content, inode)) {
          wanted.add(content);
        }
      }
    }
    isMoreToCopy = wanted.size() == most;
    copies.begin(wanted);
  }

  /**
   * Makes a change.
   *
   * @param done the changes that it stands for
   * @return null if something else is to be tried in its place
   */
  private @Nullable Recording apply(Change change, List<Change> done) throws FsException {
    try {
      return change.match(steps);
    } catch (FsException e) {
      step.tree.endMove();
      if (change instanceof Change.Content && lost.mend(change.inode())) {
        window.clear();
        return null;
      }
      if (!isForGood(change, e.errno())) {
        throw e;
      }
      if (done.size() > 1) {
        singlyTo = lastOf(done).sequence();
        return null;
      }
      return step.givenUp(change, String.valueOf(e.getMessage()));
    }
  }

  /**
   * Whether the source cannot do what a change wants, and never will: later changes go on without
   * it. Contents and names are tried for ever, as nothing else has them.
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
    if (change instanceof Change.Link) {
      return isUnable || errno == Errno.EMLINK || errno == Errno.EXDEV;
    }
    return isUnable
        && (change instanceof Change.SetAttributes || change instanceof Change.MakeNode);
  }

  // ---- recording

  /** The source has these changes: forgets what the tables keep of them. */
  private void record(List<Change> done, Recording recording) throws FsException {
    long last = lastOf(done).sequence();
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      recording.record(update);
      Map<List<Long>, DataRow> data = new HashMap<>();
      for (Change change : done) {
        for (At name : change.names()) {
          settleName(update, name, last);
        }
        update.delete(Tables.INTENTS, Tables.key(change.sequence()));
        if (change instanceof Change.Content content) {
          settleContent(update, content, data);
        }
      }
      for (Map.Entry<List<Long>, DataRow> entry : data.entrySet()) {
        settleData(update, entry.getKey().get(0), entry.getKey().get(1), entry.getValue());
      }
      for (Change change : done) {
        settleInode(update, change, last);
      }
      update.committed(last);
      update.commit();
    }
  }

  /** A name that the source has as the mount has it needs no row. */
  private void settleName(State.Update update, At name, long last) throws FsException {
    NameRow row = state.name(name.directory(), name.name());
    if (row != null && row.announced() && row.change() <= last) {
      update.deleteName(name.directory(), name.name());
    }
  }

  private void settleContent(
      State.Update update, Change.Content change, Map<List<Long>, DataRow> data)
      throws FsException {
    update.afterwards(() -> waiting.remove(change.size()));
    if (change.generation() == 0) {
      return;
    }
    List<Long> key = List.of(change.inode(), change.generation());
    DataRow row = data.get(key);
    if (row == null) {
      row = state.data(change.inode(), change.generation());
    }
    if (row != null) {
      data.put(key, row.withWaiting(Math.max(0, row.waiting() - 1)));
    }
  }

  private void settleData(State.Update update, long number, long generation, DataRow row)
      throws FsException {
    Inode inode = update.find(number);
    if (row.waiting() > 0) {
      update.data(number, generation, row);
    } else if (inode == null || inode.generation() != generation) {
      room.discard(update, number, generation, row.place());
    } else if (room.isElsewhere(row.place()) && isAtSource(inode)) {
      // The source is as good a place, and nearer than another node.
      update.put(inode.withData(0, 0, -1));
      room.discard(update, number, generation, row.place());
    } else {
      update.data(number, generation, row);
      Room.clean(update, number, generation, row.place());
    }
  }

  private static boolean isAtSource(Inode inode) {
    return inode.hasHome()
        && !inode.isRemoved()
        && !inode.is(Inode.WRITING)
        && inode.drainedSize() == inode.attributes().size();
  }

  private void settleInode(State.Update update, Change change, long last) throws FsException {
    Inode inode = update.find(change.inode());
    if (inode != null) {
      if (inode.is(Inode.XATTRS) && isExtended(change)) {
        extended.committed(update, inode.number(), last);
      }
      settleTimes(update, change, last);
      removeForgotten(update, change.inode(), last);
    }
    if (change.other() != 0) {
      removeForgotten(update, change.other(), last);
    }
  }

  /** The source may not be able to keep the times that a file was given. */
  private static void settleTimes(State.Update update, Change change, long last)
      throws FsException {
    Inode inode = update.inode(change.inode());
    Stat seen = inode.seen();
    if (change.setsTimes() && seen != null && inode.hasHome() && !State.isBusy(inode, last)) {
      update.put(Step.agreed(inode, seen));
    }
  }

  private static boolean isExtended(Change change) {
    return change instanceof Change.SetExtended
        || (change instanceof Change.Content content && content.isFirst());
  }

  private void removeForgotten(State.Update update, long number, long last) throws FsException {
    Inode inode = update.find(number);
    if (inode != null
        && inode.isRemoved()
        && inode.is(Inode.FORGOTTEN)
        && inode.change() <= last
        && inode.contentChange() <= last) {
      Names.removeNode(state, update, inode);
    }
  }
}
