package io.pmfs.writable.data;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.journal.DataRow;
import io.pmfs.writable.journal.Encoder;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import io.pmfs.writable.places.DataFile;
import io.pmfs.writable.places.DataPlace;
import io.pmfs.writable.places.DataPlaces;
import io.pmfs.writable.places.LocalData;
import io.pmfs.writable.places.LocalPlace;
import java.time.Instant;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Prepares and applies changes of content: announced content is preserved, and new content goes to
 * a place with room. The caller holds the file's lock exclusively.
 */
@SuppressWarnings("try")
public final class Contents {
  private static final Logger log = LoggerFactory.getLogger(Contents.class);

  /** Set-id bits, which writes clear. */
  static final int SET_ID = 06000;

  private final State state;
  private final OutputFiles files;
  private final DataPlaces places;
  private final Room room;

  public Contents(State state, OutputFiles files, DataPlaces places, Room room) {
    this.state = state;
    this.files = files;
    this.places = places;
    this.room = room;
  }

  // ---- before a change

  /**
   * Prepares a change of content. Afterwards the file is local, announced content is preserved, and
   * the tables mark the file as being written.
   *
   * @param low the first byte that changes
   * @param keep how many bytes of the content are still needed
   */
  Inode prepare(OutputFile file, long low, long keep) throws FsException {
    while (true) {
      try {
        Inode prepared = tryPrepare(file, low, keep);
        if (prepared != null) {
          return prepared;
        }
      } catch (FsException e) {
        if (!file.isReplaced(e)) {
          throw e;
        }
      }
    }
  }

  /** Returns null if the content was exchanged meanwhile, so that it must be prepared again. */
  private @Nullable Inode tryPrepare(OutputFile file, long low, long keep) throws FsException {
    Inode inode = state.inode(file.number());
    if (!inode.isRegular()) {
      throw new FsException(inode.isDirectory() ? Errno.EISDIR : Errno.EINVAL, "not a file");
    }
    inode = file.load(inode, keep);
    boolean isPromised = state.isPending(inode.contentChange()) && low < inode.announcedSize();
    if (inode.generation() == 0 || isPromised || file.isRemote()) {
      return newData(file, inode, low, keep);
    }
    return written(file, inode, low, keep);
  }

  /**
   * Marks a file as being written before bytes change that were not announced.
   *
   * @return null if the data file is obsolete because the source has its content now
   */
  private @Nullable Inode written(OutputFile file, Inode inode, long low, long keep)
      throws FsException {
    // The caller's row may be older than what it knows of the source's progress.
    Inode known = state.inode(file.number());
    boolean spoils = low < known.drainedSize();
    boolean shortens = keep < Long.MAX_VALUE && keep < state.leastSize(file.number());
    boolean isOfEarlierSession = file.data().place().leastSize(known) > 0;
    boolean isBegun = known.is(Inode.WRITING) && !isOfEarlierSession;
    if (isBegun && !spoils && !shortens && hasContentOf(inode, known)) {
      return known;
    }
    if (!inode.is(Inode.WRITING)) {
      file.cutTo(inode.attributes().size());
    }
    try (State.Held held = state.hold()) {
      Inode now = state.inode(file.number());
      if (!hasContentOf(inode, now)) {
        return null;
      }
      long drained = low < now.drainedSize() ? -1 : now.drainedSize();
      State.Update update = state.update();
      Inode next = begin(update, file, now, keep);
      next = next.withData(now.generation(), now.announcedSize(), drained);
      update.put(next);
      update.commit();
      return next;
    }
  }

  /**
   * Whether a file still has the content of an earlier row. The mount may have taken over what
   * another program wrote at the source, or the data file may be obsolete.
   */
  private static boolean hasContentOf(Inode then, Inode now) {
    Stat before = then.generation() == 0 ? then.seen() : null;
    Stat after = now.seen();
    return then.generation() == now.generation()
        && (before == null || (after != null && before.hasSameContent(after)));
  }

  /**
   * Makes an update mark the file as being written. Its present content stays in the data file, or
   * its first bytes, until the disk has the next one: with less, that is lost. A file that is
   * emptied counts as lost until it has a byte or is synced, even if it was synced before that.
   */
  private Inode begin(State.Update update, OutputFile file, Inode now, long keep)
      throws FsException {
    file.begin(now);
    boolean isBegun = now.is(Inode.WRITING);
    long least = isBegun ? state.leastSize(file.number()) : now.attributes().size();
    least = least == 0 ? 0 : Math.max(1, Math.min(least, keep));
    update.writing(file.number(), least, update.newNumber());
    return now.withFlag(Inode.WRITING, true);
  }

  /** Records that the disk has the present content of a file, whose lock the caller holds. */
  void synced(OutputFile file) throws FsException {
    long least = Math.min(1, file.size());
    if (state.leastSize(file.number()) <= least) {
      return;
    }
    try (State.Held held = state.hold()) {
      if (state.inode(file.number()).is(Inode.WRITING)) {
        State.Update update = state.update();
        update.writing(file.number(), least, state.begun(file.number()));
        update.commit();
      }
    }
  }

  /**
   * The process ends in an orderly way: files on its tiers that it emptied stay empty after a
   * restart of the machine.
   */
  public void keepEmptied() {
    for (long number : files.numbers()) {
      try (OutputFiles.Locked locked = files.tryLock(number)) {
        if (locked != null && locked.file().size() == 0 && state.leastSize(number) > 0) {
          locked.file().syncHere();
          synced(locked.file());
        }
      } catch (FsException e) {
        log.debug("inode {} may have its former content: {}", number, e.getMessage());
      }
    }
  }

  /**
   * Lets another node go on writing to a data file that it keeps.
   *
   * @return the first byte that it may change; -1 if this node must do the write
   */
  public long resume(OutputFile file, long generation, long low, boolean onlyGrew, long pauses)
      throws FsException {
    Inode inode = state.inode(file.number());
    long promised = state.isPending(inode.contentChange()) ? inode.announcedSize() : 0;
    boolean hasSetId = (inode.attributes().mode() & SET_ID) != 0;
    if (inode.generation() != generation || low < promised || hasSetId) {
      return -1;
    }
    file.attach(inode);
    boolean isThere = file.isRemote() && hasLeast(file, inode);
    Inode next = isThere ? written(file, inode, low, Long.MAX_VALUE) : null;
    if (next == null) {
      return -1;
    }
    file.resumed(onlyGrew, pauses);
    return Math.max(promised, next.drainedSize());
  }

  /** Whether a node still has what it wrote in an earlier session. */
  private static boolean hasLeast(OutputFile file, Inode inode) throws FsException {
    DataFile data = file.data();
    long least = data.place().leastSize(inode);
    return least == 0 || data.place().size(data.id()) >= least;
  }

  /** Starts an empty content in a data file of another node. The file is being written. */
  void restart(OutputFile file, int place) throws FsException {
    restart(file, state.inode(file.number()), places.get(place), false);
    file.emptied();
  }

  /**
   * Starts an empty content. The data file is created with the first byte, so that a file can be
   * truncated on a full disk.
   *
   * @return null if the mount has other content than that of {@code inode} by now
   */
  private @Nullable Inode restart(
      OutputFile file, Inode inode, DataPlace place, boolean isEmptyAtSource) throws FsException {
    Inode next;
    long generation;
    try (State.Held held = state.hold()) {
      Inode now = state.inode(file.number());
      if (!hasContentOf(inode, now)) {
        return null;
      }
      State.Update update = state.update();
      generation = update.newNumber();
      Instant time = state.now();
      next =
          begin(update, file, now, 0)
              .withData(generation, 0, isEmptyAtSource ? 0 : -1)
              .withTimes(time, time);
      update.put(next);
      update.data(file.number(), generation, new DataRow(place.number(), 0));
      files.drop(update, now);
      update.commit();
    }
    file.restart(place, generation);
    return next;
  }

  /** Gives a file a new data file that starts with the first bytes of its content. */
  private @Nullable Inode newData(OutputFile file, Inode inode, long low, long keep)
      throws FsException {
    long kept = Math.min(file.size(inode), keep);
    if (kept == 0) {
      return restart(file, inode, places.forNew(), drainedSize(inode) == 0);
    }
    if (inode.generation() == 0) {
      file.openSource(inode); // The source may lose its name during the wait for room.
    }
    Room.Search search = room.search();
    while (true) {
      LocalPlace place = search.placeFor(kept);
      try {
        return newData(file, inode, low, kept, place);
      } catch (FsException e) {
        if (!DataPlaces.isRefusal(e)) {
          throw e;
        }
        log.debug("inode {} moves to another place: {}", file.number(), e.getMessage());
      }
    }
  }

  private @Nullable Inode newData(
      OutputFile file, Inode inode, long low, long kept, LocalPlace place) throws FsException {
    LocalData made = place.file(new NodeData.Id(file.number(), beginCopy(file, place)));
    boolean isFilled = false;
    boolean isDone = false;
    try {
      made.make();
      file.fill(inode, made, kept);
      if (inode.is(Inode.WRITING) && file.data().mayBeSynced()) {
        made.sync();
      }
      isFilled = true;
      Inode next = recordCopy(file, inode, made, low, kept);
      isDone = next != null;
      if (isDone) {
        file.take(made);
      }
      return next;
    } finally {
      if (!isDone) {
        made.closeCounted();
        if (!isFilled) {
          discardQuietly(made);
        }
        discardCopy(made);
      }
    }
  }

  /** Until the new data file is recorded, the next process would remove it. */
  private long beginCopy(OutputFile file, LocalPlace place) throws FsException {
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      long generation = update.newNumber();
      update.put(
          Tables.COPYING,
          Tables.key(file.number(), generation),
          new Encoder().number(place.number()).toBytes());
      update.commit();
      return generation;
    }
  }

  /**
   * Lets a file go on in a copy of its content.
   *
   * @param copied the file when the copy began
   * @return null if the mount has other content by now
   */
  private @Nullable Inode recordCopy(
      OutputFile file, Inode copied, LocalData made, long low, long kept) throws FsException {
    try (State.Held held = state.hold()) {
      Inode now = state.inode(file.number());
      if (!hasContentOf(copied, now)) {
        return null;
      }
      long generation = made.id().generation();
      long had = drainedSize(now);
      boolean isPrefix = had >= 0 && low >= had && kept >= had;
      State.Update update = state.update();
      Inode next = begin(update, file, now, kept).withData(generation, 0, isPrefix ? had : -1);
      update.put(next);
      update.data(file.number(), generation, new DataRow(made.place().number(), 0));
      update.delete(Tables.COPYING, Tables.key(file.number(), generation));
      files.drop(update, now);
      update.commit();
      return next;
    }
  }

  /** Discards a data file that was not recorded; if the tables fail, the next process does it. */
  private void discardCopy(LocalData made) {
    NodeData.Id id = made.id();
    try (State.Held held = state.hold()) {
      if (state.data(id.inode(), id.generation()) == null) {
        State.Update update = state.update();
        update.delete(Tables.COPYING, Tables.key(id.inode(), id.generation()));
        Room.garbage(update, id.inode(), id.generation(), made.place().number());
        update.commit();
      }
    } catch (FsException e) {
      log.debug("cannot discard a data file of inode {}: {}", id.inode(), e.getMessage());
    }
  }

  /** Takes the source's content as that of a file without a data file. */
  private static long drainedSize(Inode inode) {
    if (inode.generation() != 0) {
      return inode.drainedSize();
    }
    Stat seen = inode.seen();
    return seen == null ? -1 : seen.attributes().size();
  }

  // ---- a change

  interface Change {
    void make(LocalData data) throws FsException;
  }

  /**
   * Applies a change to a prepared file. If its place has no room, the file is moved to the next
   * place, and at last to the source.
   *
   * @param more how many bytes it may grow by
   */
  void change(OutputFile file, long more, Change change) throws FsException {
    Room.Search search = room.search();
    boolean isRefused = false;
    while (true) {
      LocalPlace before = file.here().place();
      LocalPlace place = search.placeFor(before, file.size(), more, isRefused);
      try {
        if (place != before) {
          move(file, place, file.size());
        }
        change.make(file.made());
        return;
      } catch (FsException e) {
        file.cutOff();
        if (!DataPlaces.isRefusal(e)) {
          throw e;
        }
        log.debug("inode {} moves to another place: {}", file.number(), e.getMessage());
        isRefused = place == file.here().place();
      }
    }
  }

  /** Fetches a small content from the node that keeps it, unless that node is writing it. */
  public void bring(OutputFile file) throws FsException {
    Inode inode = state.inode(file.number());
    file.attach(inode);
    if (file.isRemote() && !inode.isRemoved()) {
      file.load(inode);
      long size = file.size(inode);
      LocalPlace place = places.withRoom(size);
      if (size <= NodeData.SMALL_BYTES && place != null) {
        move(file, place, size);
      }
    }
  }

  /** Moves the data file of a file to another place. */
  private void move(OutputFile file, LocalPlace place, long size) throws FsException {
    DataFile from = file.data();
    LocalData made = place.file(from.id());
    boolean isDone = false;
    boolean isRecorded = false;
    try {
      made.make();
      made.truncate(0); // An earlier process may have started the same copy.
      file.fill(made, size);
      if (from.mayBeSynced()) {
        made.sync();
      }
      try (State.Held held = state.hold()) {
        NodeData.Id id = from.id();
        DataRow row = state.data(id.inode(), id.generation());
        if (row == null) {
          throw new FsException(Errno.EIO, "no data file of inode " + id.inode());
        }
        State.Update update = state.update();
        update.data(id.inode(), id.generation(), new DataRow(place.number(), row.waiting()));
        Room.garbage(update, id.inode(), id.generation(), from.place().number());
        isRecorded = true; // If the commit fails, it may still be recorded.
        update.commit();
      }
      isDone = true;
      file.take(made);
    } finally {
      if (!isDone) {
        made.closeCounted();
      }
      if (!isRecorded) {
        discardQuietly(made);
      }
    }
  }

  private static void discardQuietly(LocalData made) {
    try {
      made.place().discard(made.id());
    } catch (FsException e) {
      log.debug(
          "cannot discard a copy of a data file of inode {}: {}",
          made.id().inode(),
          e.getMessage());
    }
  }
}
