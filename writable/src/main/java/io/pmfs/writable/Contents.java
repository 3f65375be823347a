package io.pmfs.writable;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.writable.WritableFileSystem.Caller;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The data of files: where they are, how a file of the source becomes a local one, and how a
 * version is announced to the journal. Unless said otherwise, the caller holds the lock of the file
 * exclusively.
 */
@SuppressWarnings("try") // What is held is not otherwise used.
final class Contents {
  /** Writes clear these bits, which are the owner's. */
  static final int SET_ID = 06000;

  private final State state;
  private final Descriptors descriptors;
  private final LocalFiles local;
  private final Room room;
  private final OutputCalls calls;
  private final InstantSource clock;
  private final Waiting waiting;
  private final Extended extended;

  Contents(
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
  boolean isOfNode(int place) throws FsException {
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
  Inode prepare(LiveFile file, long low, long keep) throws FsException {
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
    descriptors.load(file, inode);
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
  long resume(LiveFile file, long generation, long low, boolean onlyGrew) throws FsException {
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
  void restart(LiveFile file, int place) throws FsException {
    long generation;
    try (State.Held held = state.hold()) {
      Inode now = state.inode(file.number);
      State.Update update = state.update();
      generation = update.newNumber();
      update.put(writing(now).withData(generation, 0, -1));
      update.put(Tables.WRITING, Tables.key(file.number), new byte[0]);
      update.data(file.number, generation, new DataRow(place, 0));
      drop(update, now);
      update.commit();
    }
    Instant modified = file.modified;
    Instant changed = file.changed;
    descriptors.closeLocal(file);
    file.remote = local.remote(place, file.number, generation);
    beginRemote(file);
    file.place = place;
    file.generation = generation;
    file.size = 0;
    file.blocks = 0;
    file.modified = modified;
    file.changed = changed;
    file.onlyGrew = false;
  }

  private static void beginRemote(LiveFile file) {
    RemoteFile remote = file.remote;
    if (remote != null) {
      remote.begin();
    }
  }

  /** A file was made; its data file comes with the first byte. */
  void beginNew(LiveFile file, Inode inode) throws FsException {
    DataRow row = state.data(inode.number(), inode.generation());
    if (row != null && local.isOfNode(row.place())) {
      descriptors.attach(file, inode);
      beginRemote(file);
    } else if (file.size < 0 && file.file < 0) {
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
    long generation;
    int place = room.placeFor(kept);
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      generation = update.newNumber();
      if (kept > 0) {
        update.put(
            Tables.COPYING,
            Tables.key(file.number, generation),
            new Encoder().number(place).toBytes());
      }
      update.commit();
    }
    int opened = local.open(place, file.number, generation);
    boolean isDone = false;
    try {
      if (kept > 0) {
        copy(file, inode, opened, kept);
      }
      Inode next;
      try (State.Held held = state.hold()) {
        Inode now = state.inode(file.number);
        long had = now.generation() == 0 ? sourceSize(now) : now.drainedSize();
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
      }
    }
  }

  /** The source's content of a file without a data file is what the file has. */
  private static long sourceSize(Inode inode) {
    Stat seen = inode.seen();
    return seen == null ? -1 : seen.attributes().size();
  }

  /** The current data file of an inode is needed no more, unless the journal promised it. */
  void drop(State.Update update, Inode inode) throws FsException {
    if (inode.generation() == 0) {
      return;
    }
    DataRow row = state.data(inode.number(), inode.generation());
    if (row != null && row.waiting() == 0) {
      room.discard(update, inode.number(), inode.generation(), row.place());
    }
  }

  private void copy(LiveFile file, Inode inode, int to, long size) throws FsException {
    RemoteFile remote = file.remote;
    if (inode.generation() != 0 && remote != null) {
      bringBytes(remote, to, size);
      return;
    }
    if (inode.generation() != 0) {
      try {
        calls.cloneFile(file.file, to);
        calls.truncate(to, size);
        return;
      } catch (FsException e) {
        copyBytes(file.file, to, size);
        return;
      }
    }
    copyBytes(descriptors.openSource(file, inode), to, size);
  }

  private void copyBytes(int from, int to, long size) throws FsException {
    DataCopy.copy(calls, from, to, 0, size, bytes -> {});
    calls.truncate(to, size);
  }

  /** As Linux does before each write; what the source has is dropped when it is written there. */
  void dropCapabilities(long number, Caller caller) throws FsException {
    extended.dropCapabilities(number, caller);
  }

  // ---- room

  /** Waits until there is room for a write; a file that fits nowhere else goes to the source. */
  void makeRoom(LiveFile file, long bytes) throws FsException {
    if (!room.await(file, bytes)) {
      moveToSource(file);
    }
  }

  /** The place of a file has no room, whatever was counted: another attempt may be made. */
  boolean makeRoomAfter(LiveFile file, FsException full) throws FsException {
    boolean isFull = full.errno() == Errno.ENOSPC || full.errno() == Errno.EDQUOT;
    if (!isFull || file.place == LocalFiles.AT_SOURCE) {
      return false;
    }
    if (!room.makeRoom()) {
      moveToSource(file);
    }
    return true;
  }

  private void moveToSource(LiveFile file) throws FsException {
    move(file, LocalFiles.AT_SOURCE, file.size);
  }

  /** A small content comes here from the node that keeps it, once nobody writes it. */
  void bring(LiveFile file) throws FsException {
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
    int opened = local.open(place, file.number, generation);
    boolean isDone = false;
    try {
      calls.truncate(opened, 0); // A former process may have begun the same.
      if (remote == null) {
        copyBytes(file.file, opened, size);
      } else {
        bringBytes(remote, opened, size);
      }
      try (State.Held held = state.hold()) {
        DataRow row = state.data(file.number, generation);
        if (row == null) {
          throw new FsException(Errno.EIO, "no data file of inode " + file.number);
        }
        State.Update update = state.update();
        update.data(file.number, generation, new DataRow(place, row.waiting()));
        Room.garbage(update, file.number, generation, from);
        update.commit();
      }
      if (remote == null) {
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
    }
  }

  /** What was synced on another node is synced here. */
  private void bringBytes(RemoteFile remote, int to, long size) throws FsException {
    remote.copyTo(calls, to, 0, size, bytes -> {});
    calls.truncate(to, size);
    if (remote.mayBeSynced()) {
      calls.sync(to, false);
    }
  }

  // ---- after a change

  /** Whether a file that is being written has more than was announced, and nothing else changed. */
  boolean hasGrown(LiveFile file, Inode inode) throws FsException {
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
  boolean announce(LiveFile file, Caller caller) throws FsException {
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
            new Change.Head(sequence, inode.number(), caller, clock.millis()),
            isFirst ? new At(inode.parent(), inode.name()) : null,
            false,
            generation,
            size,
            now,
            isFirst && !attributes.isEmpty() ? FileName.of(Extended.encode(attributes)) : null));
    update.afterwards(() -> waiting.add(size));
  }
}
