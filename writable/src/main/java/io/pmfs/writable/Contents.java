package io.pmfs.writable;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.DataRow;
import io.pmfs.writable.journal.Encoder;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.NameRow;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The data of files: where they are, how a file of the source becomes a local one, and how a
 * version is announced to the journal. Unless said otherwise, the caller holds the lock of the file
 * exclusively.
 */
@SuppressWarnings("try") // What is held is not otherwise used.
public final class Contents {
  private static final Logger log = LoggerFactory.getLogger(Contents.class);

  /** Writes clear these bits, which are the owner's. */
  public static final int SET_ID = 06000;

  private final State state;
  private final Descriptors descriptors;
  private final LocalFiles local;
  private final Room room;
  private final OutputCalls calls;
  private final InstantSource clock;
  private final Waiting waiting;
  private final Extended extended;

  public Contents(
      State state,
      Descriptors descriptors,
      LocalFiles local,
      Room room,
      OutputCalls calls,
      InstantSource clock,
      Waiting waiting,
      Extended extended) {
    this.state = state;
    this.descriptors = descriptors;
    this.local = local;
    this.room = room;
    this.calls = calls;
    this.clock = clock;
    this.waiting = waiting;
    this.extended = extended;
  }

  /** Whether another node keeps the data files of a place. */
  public boolean isOfNode(int place) throws FsException {
    return local.isOfNode(place);
  }

  // ---- before a change

  /**
   * Prepares a change of content: afterwards the file is local, what the journal promised stays as
   * it is, and the tables say that the file is being written.
   *
   * @param low the first byte that changes
   * @param keep how many bytes of the content are still needed
   */
  public Inode prepare(LiveFile file, long low, long keep) throws FsException {
    while (true) {
      try {
        Inode prepared = tryPrepare(file, low, keep);
        if (prepared != null) {
          return prepared;
        }
      } catch (FsException e) {
        if (!descriptors.isReplaced(file, e)) {
          throw e;
        }
      }
    }
  }

  private @Nullable Inode tryPrepare(LiveFile file, long low, long keep) throws FsException {
    Inode inode = state.inode(file.number);
    if (!inode.isRegular()) {
      throw new FsException(inode.isDirectory() ? Errno.EISDIR : Errno.EINVAL, "not a file");
    }
    inode = descriptors.load(file, inode);
    boolean isPromised = state.isPending(inode.contentChange()) && low < inode.announcedSize();
    if (inode.generation() == 0 || isPromised || file.remote != null) {
      return newData(file, inode, low, keep);
    }
    return written(file, inode, low);
  }

  /**
   * Bytes of a file change that nothing promised: the tables say so.
   *
   * @return null if the data file is of no use any more, as the source has its content now
   */
  private @Nullable Inode written(LiveFile file, Inode inode, long low) throws FsException {
    boolean spoils = low < inode.drainedSize();
    if (inode.is(Inode.WRITING) && !spoils) {
      return inode;
    }
    try (State.Held held = state.hold()) {
      Inode now = state.inode(file.number);
      if (now.generation() != inode.generation()) {
        return null;
      }
      Inode next = writing(now).withData(now.generation(), now.announcedSize(), drained(now, low));
      begin(file, now);
      State.Update update = state.update();
      update.put(next);
      update.put(Tables.WRITING, Tables.key(file.number), new byte[0]);
      update.commit();
      return next;
    }
  }

  private static Inode writing(Inode inode) {
    return inode.withFlag(Inode.WRITING, true);
  }

  private static long drained(Inode inode, long low) {
    return low < inode.drainedSize() ? -1 : inode.drainedSize();
  }

  /**
   * Another node goes on writing to a data file that it keeps.
   *
   * @return the first byte that it may change; -1 if this node must write
   */
  public long resume(LiveFile file, long generation, long low, boolean onlyGrew)
      throws FsException {
    Inode inode = state.inode(file.number);
    long promised = state.isPending(inode.contentChange()) ? inode.announcedSize() : 0;
    boolean hasSetId = (inode.attributes().mode() & SET_ID) != 0;
    if (inode.generation() != generation || low < promised || hasSetId) {
      return -1;
    }
    descriptors.attach(file, inode);
    if (file.remote == null) {
      return -1;
    }
    Inode next = written(file, inode, low);
    if (next == null) {
      return -1;
    }
    file.onlyGrew &= onlyGrew;
    return Math.max(promised, next.drainedSize());
  }

  /** The content of a file begins anew, in a data file of another node. */
  public void restart(LiveFile file, int place) throws FsException {
    restart(file, place, false);
    file.size = 0;
    file.onlyGrew = false;
  }

  /**
   * The data file comes with the first byte: a full disk does not keep a file from being emptied.
   */
  private Inode restart(LiveFile file, int place, boolean isEmptyAtSource) throws FsException {
    Inode next;
    long generation;
    try (State.Held held = state.hold()) {
      Inode now = state.inode(file.number);
      begin(file, now);
      State.Update update = state.update();
      generation = update.newNumber();
      Instant time = clock.instant();
      next = writing(now).withData(generation, 0, isEmptyAtSource ? 0 : -1).withTimes(time, time);
      update.put(next);
      update.put(Tables.WRITING, Tables.key(file.number), new byte[0]);
      update.data(file.number, generation, new DataRow(place, 0));
      drop(update, now);
      update.commit();
    }
    long size = file.size;
    Instant modified = file.modified;
    Instant changed = file.changed;
    descriptors.closeLocal(file);
    file.remote = local.remote(place, file.number, generation);
    beginRemote(file);
    file.place = place;
    file.generation = generation;
    file.size = size;
    file.blocks = 0;
    file.modified = modified;
    file.changed = changed;
    return next;
  }

  private static void beginRemote(LiveFile file) {
    RemoteFile remote = file.remote;
    if (remote != null) {
      remote.begin();
    }
  }

  /** A file was made; its data file comes with the first byte. */
  public void beginNew(LiveFile file, Inode inode) throws FsException {
    DataRow row = state.data(inode.number(), inode.generation());
    if (row != null && local.isOfNode(row.place())) {
      descriptors.attach(file, inode);
      beginRemote(file);
    } else if (file.size < 0 && file.file < 0) {
      if (row != null) {
        file.place = row.place();
        file.generation = inode.generation();
      }
      file.size = 0;
      file.blocks = 0;
      file.modified = inode.attributes().modificationTime();
      file.changed = inode.attributes().changeTime();
    }
  }

  private static void begin(LiveFile file, Inode inode) {
    if (!inode.is(Inode.WRITING)) {
      file.size = inode.attributes().size();
      file.blocks = inode.attributes().blocks();
      file.modified = inode.attributes().modificationTime();
      file.changed = inode.attributes().changeTime();
    }
  }

  /** Gives a file a new data file with the first bytes of its content. */
  private Inode newData(LiveFile file, Inode inode, long low, long keep) throws FsException {
    long size = Descriptors.size(file, inode);
    long kept = Math.min(size, keep);
    if (kept == 0) {
      return restart(file, room.placeForNew(), drainedSize(inode) == 0);
    }
    Room.Search search = room.search();
    while (true) {
      int place = search.placeFor(kept);
      try {
        return newData(file, inode, low, kept, place);
      } catch (FsException e) {
        if (!LocalFiles.isRefusal(e)) {
          throw e;
        }
        log.debug("inode {} goes on elsewhere: {}", file.number, e.getMessage());
      }
    }
  }

  private Inode newData(LiveFile file, Inode inode, long low, long kept, int place)
      throws FsException {
    long generation;
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      generation = update.newNumber();
      update.put(
          Tables.COPYING,
          Tables.key(file.number, generation),
          new Encoder().number(place).toBytes());
      update.commit();
    }
    int opened;
    try {
      opened = local.open(place, file.number, generation);
    } catch (FsException e) {
      discardCopy(file, generation, place);
      throw e;
    }
    boolean isDone = false;
    try {
      copy(file, inode, new DataFile(place, opened), kept);
      Inode next;
      try (State.Held held = state.hold()) {
        Inode now = state.inode(file.number);
        long had = drainedSize(now);
        boolean isPrefix = had >= 0 && low >= had && kept >= had;
        begin(file, now);
        next = writing(now).withData(generation, 0, isPrefix ? had : -1);
        State.Update update = state.update();
        update.put(next);
        update.put(Tables.WRITING, Tables.key(file.number), new byte[0]);
        update.data(file.number, generation, new DataRow(place, 0));
        update.delete(Tables.COPYING, Tables.key(file.number, generation));
        drop(update, now);
        update.commit();
      }
      long liveSize = file.size;
      Instant modified = file.modified;
      Instant changed = file.changed;
      if (file.file >= 0) {
        descriptors.recountQuietly(file);
        calls.close(file.file);
      }
      file.file = opened;
      file.remote = null;
      file.place = place;
      file.generation = generation;
      file.isNameSynced = false;
      file.countedBytes = 0;
      file.uncountedBytes = 0;
      file.size = liveSize;
      file.modified = modified;
      file.changed = changed;
      isDone = true;
      descriptors.opened(file);
      descriptors.recount(file);
      return next;
    } finally {
      if (!isDone) {
        calls.close(opened);
        discardCopy(file, generation, place);
      }
    }
  }

  /**
   * A data file that was not filled is of no use. If that cannot be said, the next process does.
   */
  private void discardCopy(LiveFile file, long generation, int place) {
    try (State.Held held = state.hold()) {
      if (state.data(file.number, generation) == null) {
        State.Update update = state.update();
        update.delete(Tables.COPYING, Tables.key(file.number, generation));
        Room.garbage(update, file.number, generation, place);
        update.commit();
      }
    } catch (FsException e) {
      log.debug("a data file of inode {} stays: {}", file.number, e.getMessage());
    }
  }

  /** The source's content of a file without a data file is what the file has. */
  private static long drainedSize(Inode inode) {
    if (inode.generation() != 0) {
      return inode.drainedSize();
    }
    Stat seen = inode.seen();
    return seen == null ? -1 : seen.attributes().size();
  }

  /** The current data file of an inode is needed no more, unless the journal promised it. */
  public void drop(State.Update update, Inode inode) throws FsException {
    if (inode.generation() == 0) {
      return;
    }
    DataRow row = state.data(inode.number(), inode.generation());
    if (row != null && row.waiting() == 0) {
      room.discard(update, inode.number(), inode.generation(), row.place());
    }
  }

  /** An open data file that is being filled. */
  private record DataFile(int place, int file) {}

  private void copy(LiveFile file, Inode inode, DataFile to, long size) throws FsException {
    RemoteFile remote = file.remote;
    if (inode.generation() != 0 && remote != null) {
      bringBytes(remote, to, size);
    } else if (inode.generation() == 0) {
      copyBytes(descriptors.openSource(file, inode), to, size);
    } else if (file.file < 0) {
      throw descriptors.gone(file);
    } else if (!isCloned(file.file, to, size)) {
      copyBytes(file.file, to, size);
    }
  }

  private boolean isCloned(int from, DataFile to, long size) {
    try {
      calls.cloneFile(from, to.file());
      calls.truncate(to.file(), size);
      return true;
    } catch (FsException e) {
      return false;
    }
  }

  private void copyBytes(int from, DataFile to, long size) throws FsException {
    DataCopy.copy(calls, from, target(to), 0, size, bytes -> {});
    local.truncate(to.place(), to.file(), size);
  }

  private DataCopy.Target target(DataFile to) {
    return (bytes, at) -> local.write(to.place(), to.file(), bytes, at);
  }

  /** As Linux does before each write; what the source has is dropped when it is written there. */
  public void dropCapabilities(long number, Caller caller) throws FsException {
    extended.dropCapabilities(number, caller);
  }

  // ---- room

  /** A change of the data file of a file, which may have been moved before. */
  public interface DataChange {
    void make(int place, int file) throws FsException;
  }

  /**
   * Makes a change of a data file where there is room for it: if its place has none, the file goes
   * on in the next one, at last at the source.
   *
   * @param more how many bytes it may grow by
   */
  public void change(LiveFile file, long more, DataChange change) throws FsException {
    Room.Search search = room.search();
    boolean isRefused = false;
    while (true) {
      int place = search.placeFor(file, more, isRefused);
      try {
        if (place != file.place) {
          move(file, place, file.size);
        }
        descriptors.make(file);
        change.make(file.place, file.file);
        return;
      } catch (FsException e) {
        cutOff(file);
        if (!LocalFiles.isRefusal(e)) {
          throw e;
        }
        log.debug("inode {} goes on elsewhere: {}", file.number, e.getMessage());
        isRefused = place == file.place;
      }
    }
  }

  /** What a change wrote before it failed must not be taken for the file's. */
  private void cutOff(LiveFile file) {
    if (file.file >= 0) {
      try {
        calls.truncate(file.file, file.size);
      } catch (FsException e) {
        log.debug("inode {} may be too long: {}", file.number, e.getMessage());
      }
    }
  }

  /** A small content comes here from the node that keeps it, once nobody writes it. */
  public void bring(LiveFile file) throws FsException {
    Inode inode = state.inode(file.number);
    descriptors.attach(file, inode);
    if (file.remote != null && !inode.isRemoved()) {
      descriptors.load(file, inode);
      long size = Descriptors.size(file, inode);
      int place = local.placeWithRoom(size);
      if (size <= NodeData.SMALL_BYTES && place >= 0) {
        move(file, place, size);
      }
    }
  }

  /** Moves a data file to another place. */
  private void move(LiveFile file, int place, long size) throws FsException {
    long generation = file.generation;
    int from = file.place;
    RemoteFile remote = file.remote;
    if (remote == null && file.file < 0 && size > 0) {
      throw descriptors.gone(file);
    }
    int opened = local.open(place, file.number, generation);
    boolean isDone = false;
    boolean isRecorded = false;
    try {
      DataFile to = new DataFile(place, opened);
      local.truncate(place, opened, 0); // A former process may have begun the same.
      if (remote != null) {
        bringBytes(remote, to, size);
      } else if (size > 0) {
        copyBytes(file.file, to, size);
      }
      try (State.Held held = state.hold()) {
        DataRow row = state.data(file.number, generation);
        if (row == null) {
          throw new FsException(Errno.EIO, "no data file of inode " + file.number);
        }
        State.Update update = state.update();
        update.data(file.number, generation, new DataRow(place, row.waiting()));
        Room.garbage(update, file.number, generation, from);
        isRecorded = true; // Perhaps, if that fails.
        update.commit();
      }
      if (file.file >= 0) {
        descriptors.recountQuietly(file);
        calls.close(file.file);
      }
      file.file = opened;
      file.remote = null;
      file.place = place;
      file.countedBytes = 0;
      file.uncountedBytes = 0;
      file.isNameSynced = false;
      isDone = true;
      descriptors.opened(file);
      descriptors.recount(file);
    } finally {
      if (!isDone) {
        calls.close(opened);
      }
      if (!isRecorded) {
        removeQuietly(place, file.number, generation);
      }
    }
  }

  private void removeQuietly(int place, long number, long generation) {
    try {
      local.remove(place, number, generation);
    } catch (FsException e) {
      log.debug("a copy of a data file of inode {} stays: {}", number, e.getMessage());
    }
  }

  /** What was synced on another node is synced here. */
  private void bringBytes(RemoteFile remote, DataFile to, long size) throws FsException {
    remote.copyTo(target(to), 0, size, bytes -> {});
    local.truncate(to.place(), to.file(), size);
    if (remote.mayBeSynced()) {
      calls.sync(to.file(), false);
    }
  }

  // ---- after a change

  /** Whether a file that is being written has more than was announced, and nothing else changed. */
  public boolean hasGrown(LiveFile file, Inode inode) throws FsException {
    if (file.remote != null) {
      descriptors.load(file, inode);
    }
    return file.onlyGrew && file.size > 0;
  }

  /**
   * Tells the journal of the content as it is now, if that is new.
   *
   * @return whether it was
   */
  public boolean announce(LiveFile file, Caller caller) throws FsException {
    Inode before = state.inode(file.number);
    if (before.isRemoved() || (!before.is(Inode.WRITING) && before.is(Inode.ANNOUNCED))) {
      return false;
    }
    if (file.size != 0 || file.file >= 0 || file.remote != null) {
      descriptors.load(file, before);
      descriptors.recount(file);
    }
    try (State.Held held = state.hold()) {
      Inode inode = state.inode(file.number);
      if (inode.isRemoved()) {
        return false;
      }
      State.Update update = state.update();
      Map<FileName, byte[]> attributes =
          inode.is(Inode.XATTRS) ? extended.changed(file.number) : Map.of();
      announce(update, file, inode, caller, attributes);
      update.commit();
    }
    file.onlyGrew = true;
    return true;
  }

  /** The caller holds the state's lock and commits. */
  private void announce(
      State.Update update,
      LiveFile file,
      Inode inode,
      Caller caller,
      Map<FileName, byte[]> attributes)
      throws FsException {
    boolean isFirst = !inode.is(Inode.ANNOUNCED);
    boolean wasWritten = inode.is(Inode.WRITING);
    Attributes now = wasWritten ? Descriptors.attributes(file, inode) : inode.attributes();
    long sequence = update.nextSequence();
    long size = now.size();
    long generation = size == 0 ? 0 : inode.generation();
    if (isFirst) {
      update.name(
          inode.parent(), inode.name(), new NameRow(inode.number(), inode.type(), sequence, true));
      update.put(update.inode(inode.parent()).withChange(sequence));
    }
    if (generation != 0) {
      DataRow row = state.data(inode.number(), generation);
      if (row == null) {
        throw new FsException(Errno.EIO, "no data file of inode " + inode.number());
      }
      update.data(inode.number(), generation, row.withWaiting(row.waiting() + 1));
    }
    update.put(
        inode
            .with(now)
            .withContent(sequence, size)
            .withFlag(Inode.ANNOUNCED, true)
            .withFlag(Inode.WRITING, false));
    update.delete(Tables.WRITING, Tables.key(inode.number()));
    update.journal(
        new Change.Content(
            caller.head(sequence, inode.number(), clock.millis()),
            isFirst ? new At(inode.parent(), inode.name()) : null,
            false,
            generation,
            size,
            now,
            isFirst && !attributes.isEmpty() ? FileName.of(Extended.encode(attributes)) : null));
    update.afterwards(() -> waiting.add(size));
  }
}
