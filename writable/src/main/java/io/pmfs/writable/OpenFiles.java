package io.pmfs.writable;

import io.pmfs.metadata.FileName;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.tier.ReadResult;
import io.pmfs.tier.ReadSink;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Open files: their handles, reads and writes. A handle carries the flags with which it was opened,
 * so a handle of a former process still works. Safe for use by many threads.
 */
@SuppressWarnings("try") // What is held is not otherwise used.
final class OpenFiles {
  private static final int REGULAR = 0100000;
  private static final int PERMISSIONS = 07777;
  private static final int ACCESS_MODE = 3;
  private static final int FLAG_BITS = 4;
  private static final int APPENDS = 1;
  private static final int WRITES = 2;

  /** The kernel need not look for capabilities before it passes a write. */
  private static final int ONLY_WRITES = 4;

  private static final long MAX_SIZE = Long.MAX_VALUE - 4096;

  private final State state;
  private final Nodes nodes;
  private final Names names;
  private final LiveFiles live;
  private final Contents contents;
  private final Room room;
  private final Rights rights;
  private final Untold untold;
  private final OutputCalls calls;
  private final InstantSource clock;
  private final AtomicLong nextHandle;
  private final long firstHandle;

  /** The files of this process's handles, each a use of the file. */
  private final Map<Long, LiveFile> handles = new ConcurrentHashMap<>();

  OpenFiles(
      State state,
      Nodes nodes,
      Names names,
      LiveFiles live,
      Contents contents,
      Room room,
      Rights rights,
      Untold untold,
      OutputCalls calls,
      InstantSource clock) {
    this.state = state;
    this.nodes = nodes;
    this.names = names;
    this.live = live;
    this.contents = contents;
    this.room = room;
    this.rights = rights;
    this.untold = untold;
    this.calls = calls;
    this.clock = clock;
    // Later than those of a former process.
    this.firstHandle = clock.millis() << 16;
    this.nextHandle = new AtomicLong(firstHandle);
  }

  // ---- opening

  Opened create(long directory, FileName name, int mode, int flags, Caller caller)
      throws FsException {
    Nodes.checkName(name);
    Long before = state.result(caller.unique());
    if (before != null) {
      return opened(state.inode(before), flags);
    }
    while (true) {
      try {
        Inode created =
            names.makeName(
                directory,
                name,
                (update, parent, found) -> {
                  Inode inode = fresh(update, parent, name, mode, caller);
                  names.addName(update, parent, name, inode, found.change(), false);
                  update.put(inode);
                  update.result(caller.unique(), inode.number());
                  return inode;
                });
        return openedNew(created, flags, caller);
      } catch (FsException e) {
        if (e.errno() != Errno.EEXIST || (flags & OutputCalls.O_EXCL) != 0) {
          throw e;
        }
      }
      Inode existing = nodes.lookup(directory, name);
      if (existing != null) {
        return open(existing.number(), flags, caller);
      }
    }
  }

  /** A new file that is being written from its first moment on. */
  private Inode fresh(State.Update update, Inode parent, FileName name, int mode, Caller caller)
      throws FsException {
    Inode inode = names.fresh(update, parent, name, REGULAR | (mode & PERMISSIONS), 0, caller);
    long generation = update.newNumber();
    update.data(inode.number(), generation, new DataRow(room.placeForNew(), 0));
    update.put(Tables.WRITING, Tables.key(inode.number()), new byte[0]);
    return inode.withData(generation, 0, -1).withFlag(Inode.WRITING, true);
  }

  Opened createUnnamed(long directory, int mode, int flags, Caller caller) throws FsException {
    Long before = state.result(caller.unique());
    if (before != null) {
      return opened(state.inode(before), flags);
    }
    nodes.directory(directory);
    Inode created;
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      Inode parent = update.inode(directory);
      if (parent.isRemoved()) {
        throw new FsException(Errno.ENOENT, "directory " + directory + " was removed");
      }
      Inode inode =
          fresh(update, parent, Inode.NO_NAME, mode, caller)
              .withLinks(0, clock.instant())
              .withFlag(Inode.UNNAMED, (flags & OutputCalls.O_EXCL) == 0)
              .withPlace(0, Inode.NO_NAME);
      update.put(inode);
      update.put(Tables.NAMELESS, Tables.key(inode.number()), new byte[0]);
      update.result(caller.unique(), inode.number());
      update.commit();
      created = inode;
    }
    return openedNew(created, flags, caller);
  }

  Opened open(long number, int flags, Caller caller) throws FsException {
    Inode inode = nodes.refresh(nodes.find(number));
    if (inode.isDirectory()) {
      throw new FsException(Errno.EISDIR, "inode " + number);
    }
    if ((flags & OutputCalls.O_TRUNC) != 0 && state.result(caller.unique()) == null) {
      LiveFile file = live.acquire(number);
      file.lock.writeLock().lock();
      try {
        truncate(file, 0, caller.uid() != 0, caller);
        announceAtOnce(file, flags, caller);
        return opened(state.inode(number), flags);
      } finally {
        file.lock.writeLock().unlock();
        live.release(file);
      }
    }
    return opened(inode, flags);
  }

  /** A file that was opened only to be read may be closed without a request. */
  private void announceAtOnce(LiveFile file, int flags, Caller caller) throws FsException {
    if ((flags & ACCESS_MODE) == OutputCalls.O_RDONLY && file.writers.get() == 0) {
      contents.announce(file, caller);
    }
  }

  /** A file that this process has just made is empty: its data file need not be asked. */
  private Opened openedNew(Inode inode, int flags, Caller caller) throws FsException {
    LiveFile file = live.acquire(inode.number());
    file.lock.writeLock().lock();
    try {
      contents.beginNew(file, inode);
      announceAtOnce(file, flags, caller);
      return opened(inode, flags, (flags & ACCESS_MODE) == OutputCalls.O_WRONLY);
    } finally {
      file.lock.writeLock().unlock();
      live.release(file);
    }
  }

  private Opened opened(Inode inode, int flags) throws FsException {
    return opened(inode, flags, false);
  }

  private Opened opened(Inode inode, int flags, boolean isOnlyWritten) throws FsException {
    int bits = (flags & OutputCalls.O_APPEND) != 0 ? APPENDS : 0;
    bits |= (flags & ACCESS_MODE) != 0 ? WRITES : 0;
    bits |= isOnlyWritten ? ONLY_WRITES : 0;
    long handle = (nextHandle.incrementAndGet() << FLAG_BITS) | bits;
    LiveFile file = live.acquire(inode.number());
    handles.put(handle, file);
    if ((bits & WRITES) != 0) {
      file.writers.incrementAndGet();
    }
    return new Opened(nodes.shown(inode), handle, isOnlyWritten);
  }

  private boolean isFormer(long handle) {
    return handle >>> FLAG_BITS <= firstHandle;
  }

  // ---- reading

  void read(long number, long offset, int size, ReadSink sink) throws FsException {
    LiveFile file = live.acquire(number);
    try {
      Inode inode = nodes.find(number);
      if (!inode.isRegular()) {
        throw new FsException(inode.isDirectory() ? Errno.EISDIR : Errno.EINVAL, "inode " + number);
      }
      if (!readIfReady(file, offset, size, sink)) {
        file.lock.writeLock().lock();
        try {
          inode = state.inode(number);
          prepareRead(file, inode);
          readFrom(file, inode, offset, size, sink);
        } finally {
          file.lock.writeLock().unlock();
        }
      }
    } finally {
      live.release(file);
    }
  }

  /** Reads if what is to be read is open already, beside other readers. */
  private boolean readIfReady(LiveFile file, long offset, int size, ReadSink sink)
      throws FsException {
    file.lock.readLock().lock();
    try {
      Inode inode = state.inode(file.number);
      if (!isReady(file, inode)) {
        return false;
      }
      readFrom(file, inode, offset, size, sink);
      return true;
    } finally {
      file.lock.readLock().unlock();
    }
  }

  private static boolean isReady(LiveFile file, Inode inode) {
    if (inode.generation() != 0) {
      return file.generation == inode.generation()
          && file.file >= 0
          && (!inode.is(Inode.WRITING) || file.size >= 0);
    }
    Stat seen = inode.seen();
    Stat open = file.sourceStat;
    return file.generation == 0
        && file.source >= 0
        && open != null
        && (seen == null || open.isSameFile(seen));
  }

  private void prepareRead(LiveFile file, Inode inode) throws FsException {
    contents.load(file, inode);
    if (inode.generation() == 0 && inode.hasHome()) {
      contents.openSource(file, inode);
    }
  }

  private void readFrom(LiveFile file, Inode inode, long offset, int size, ReadSink sink)
      throws FsException {
    long end = Contents.size(file, inode);
    int wanted = (int) Math.min(size, Math.max(0, end - offset));
    int from = inode.generation() != 0 ? file.file : file.source;
    ByteBuffer buffer = sink.buffer(wanted);
    int count = 0;
    if (wanted > 0 && from >= 0) {
      buffer.position(0).limit(wanted);
      count = calls.read(from, buffer, offset);
    }
    buffer.position(0).limit(count);
    sink.expect(count);
    if (count > 0) {
      try {
        sink.accept(new ReadResult.Bytes(buffer));
      } catch (IOException e) {
        throw new FsException(Errno.EIO, "answering a read", e);
      }
    }
  }

  // ---- writing

  int write(
      long number,
      long handle,
      long offset,
      ByteBuffer bytes,
      boolean append,
      boolean clearSetId,
      Caller caller)
      throws FsException {
    int length = bytes.remaining();
    if (length == 0) {
      return 0;
    }
    nodes.find(number);
    LiveFile file = live.acquire(number);
    file.lock.writeLock().lock();
    try {
      long at = offset;
      if (append) {
        Inode inode = state.inode(number);
        contents.load(file, inode);
        at = Contents.size(file, inode);
        if (isFormer(handle) && isWritten(file, inode, offset, bytes, at)) {
          return length; // A former process did it, and died before it could say so.
        }
      }
      if (at < 0 || at > MAX_SIZE - length) {
        throw new FsException(Errno.EFBIG, "inode " + number);
      }
      Inode inode = contents.prepare(file, at, Long.MAX_VALUE);
      if ((handle & ONLY_WRITES) != 0 && inode.is(Inode.XATTRS)) {
        contents.dropCapabilities(number, caller);
      }
      boolean grows = at == file.size;
      put(file, bytes, at);
      file.onlyGrew &= grows;
      file.size = Math.max(file.size, at + length);
      file.blocks = Math.max(file.blocks, 8 * ((file.countedBytes + length + 4095) / 4096));
      Instant now = clock.instant();
      file.modified = now;
      file.changed = now;
      contents.written(file, length);
      if (clearSetId) {
        rights.clearSetId(inode, caller);
      }
      return length;
    } finally {
      file.lock.writeLock().unlock();
      live.release(file);
    }
  }

  private void put(LiveFile file, ByteBuffer bytes, long offset) throws FsException {
    contents.makeRoom(file, bytes.remaining());
    int start = bytes.position();
    while (true) {
      try {
        calls.write(file.file, bytes, offset);
        return;
      } catch (FsException e) {
        if (!contents.makeRoomAfter(file, e)) {
          throw e;
        }
        bytes.position(start);
      }
    }
  }

  private boolean isWritten(LiveFile file, Inode inode, long offset, ByteBuffer bytes, long size)
      throws FsException {
    int length = bytes.remaining();
    if (inode.generation() == 0 || offset < 0 || offset + length != size) {
      return false;
    }
    ByteBuffer there = ByteBuffer.allocateDirect(length);
    int count = calls.read(file.file, there, offset);
    return count == length && there.flip().equals(bytes);
  }

  /** Sets the size. The caller holds the file's lock. */
  void truncate(LiveFile file, long size, boolean clearSetId, Caller caller) throws FsException {
    if (size < 0 || size > MAX_SIZE) {
      throw new FsException(size < 0 ? Errno.EINVAL : Errno.EFBIG, "size " + size);
    }
    Inode inode = state.inode(file.number);
    contents.load(file, inode);
    long before = Contents.size(file, inode);
    Inode prepared = contents.prepare(file, Math.min(size, before), size);
    if (size != before || file.size != size) {
      calls.truncate(file.file, size);
      file.size = size;
      file.onlyGrew = false;
      contents.recount(file);
    }
    Instant now = clock.instant();
    file.modified = now;
    file.changed = now;
    if (clearSetId) {
      rights.clearSetId(prepared, caller);
    }
    if (caller.unique() != 0) {
      try (State.Held held = state.hold()) {
        State.Update update = state.update();
        update.result(caller.unique(), file.number);
        update.commit();
      }
    }
  }

  /** Sets the size, if that is wanted, and then everything else. */
  Node setAttributes(long number, NewAttributes wanted, Caller caller) throws FsException {
    nodes.find(number);
    Long size = wanted.size();
    if (size != null) {
      resize(number, size, wanted, caller);
      boolean isAll =
          wanted.mode() == null
              && wanted.uid() == null
              && wanted.gid() == null
              && wanted.accessTime() == null
              && wanted.modificationTime() == null;
      if (isAll) {
        return nodes.shown(state.inode(number));
      }
    }
    return rights.change(number, wanted, caller);
  }

  private void resize(long number, long size, NewAttributes wanted, Caller caller)
      throws FsException {
    Inode inode = state.inode(number);
    if (!inode.isRegular()) {
      throw new FsException(inode.isDirectory() ? Errno.EISDIR : Errno.EINVAL, "inode " + number);
    }
    if (state.result(caller.unique()) != null) {
      return;
    }
    boolean isOpen = wanted.handle() != 0;
    live.exclusively(
        number,
        file -> {
          truncate(file, size, wanted.clearSetId(), caller);
          if (!isOpen && file.writers.get() == 0) {
            // truncate(2): no close of a writer follows.
            contents.announce(file, caller);
          }
          return file;
        });
  }

  void allocate(long number, int mode, long offset, long length, Caller caller) throws FsException {
    int known =
        OutputCalls.FALLOC_KEEP_SIZE
            | OutputCalls.FALLOC_PUNCH_HOLE
            | OutputCalls.FALLOC_ZERO_RANGE;
    boolean punches = (mode & OutputCalls.FALLOC_PUNCH_HOLE) != 0;
    boolean zeroes = (mode & OutputCalls.FALLOC_ZERO_RANGE) != 0;
    boolean keeps = (mode & OutputCalls.FALLOC_KEEP_SIZE) != 0;
    if ((mode & ~known) != 0 || (punches && (zeroes || !keeps))) {
      throw new FsException(Errno.EOPNOTSUPP, "fallocate mode " + mode);
    }
    if (offset < 0 || length <= 0) {
      throw new FsException(Errno.EINVAL, "fallocate of " + length + " bytes");
    }
    if (offset > MAX_SIZE - length) {
      throw new FsException(Errno.EFBIG, "fallocate up to " + (offset + length));
    }
    live.exclusively(
        number,
        file -> {
          long low = punches || zeroes ? offset : Long.MAX_VALUE;
          Inode inode = contents.prepare(file, Math.min(low, sizeOf(file)), Long.MAX_VALUE);
          if (!punches) {
            contents.makeRoom(file, length);
          }
          calls.allocate(file.file, mode, offset, length);
          contents.recount(file);
          if (!keeps && offset + length > file.size) {
            file.size = offset + length;
          }
          file.onlyGrew = false;
          Instant now = clock.instant();
          file.modified = now;
          file.changed = now;
          if (caller.uid() != 0) {
            rights.clearSetId(inode, caller);
          }
          return inode;
        });
  }

  private long sizeOf(LiveFile file) throws FsException {
    Inode inode = state.inode(file.number);
    contents.load(file, inode);
    return Contents.size(file, inode);
  }

  long copyRange(
      long number,
      long offset,
      long toNumber,
      long toHandle,
      long toOffset,
      long length,
      Caller caller)
      throws FsException {
    if (offset < 0 || toOffset < 0 || length < 0) {
      throw new FsException(Errno.EINVAL, "copying " + length + " bytes");
    }
    if (number == toNumber && offset < toOffset + length && toOffset < offset + length) {
      throw new FsException(Errno.EINVAL, "the ranges overlap");
    }
    ByteBuffer buffer = CopyBuffers.take();
    try {
      return copyRange(number, offset, toNumber, toHandle, toOffset, length, buffer, caller);
    } finally {
      CopyBuffers.give(buffer);
    }
  }

  private long copyRange(
      long number,
      long offset,
      long toNumber,
      long toHandle,
      long toOffset,
      long length,
      ByteBuffer buffer,
      Caller caller)
      throws FsException {
    long done = 0;
    Piece piece = new Piece(buffer);
    while (done < length) {
      int wanted = (int) Math.min(buffer.capacity(), length - done);
      read(number, offset + done, wanted, piece);
      int count = piece.filled();
      if (count == 0) {
        break;
      }
      write(toNumber, toHandle, toOffset + done, piece.bytes(), false, caller.uid() != 0, caller);
      done += count;
    }
    return done;
  }

  /** Receives a piece of a file in a buffer. */
  private static final class Piece implements ReadSink {
    private final ByteBuffer buffer;
    private int filled;

    Piece(ByteBuffer buffer) {
      this.buffer = buffer;
    }

    @Override
    public void expect(int size) {
      filled = size;
    }

    @Override
    public ByteBuffer buffer(int size) {
      return buffer.clear();
    }

    @Override
    public void accept(ReadResult piece) {
      filled = piece.size();
    }

    int filled() {
      return filled;
    }

    ByteBuffer bytes() {
      return buffer.duplicate().position(0).limit(filled);
    }
  }

  long seek(long number, long offset, int whence) throws FsException {
    return live.exclusively(
        number,
        file -> {
          Inode inode = nodes.find(number);
          prepareRead(file, inode);
          long size = Contents.size(file, inode);
          if (offset < 0 || offset >= size) {
            throw new FsException(Errno.ENXIO, "offset " + offset);
          }
          int from = inode.generation() != 0 ? file.file : file.source;
          if (from < 0) {
            return whence == OutputCalls.SEEK_HOLE ? offset : size;
          }
          return Math.min(size, calls.seek(from, offset, whence));
        });
  }

  // ---- closing

  void flush(long number, Caller caller) throws FsException {
    announce(number, caller);
    untold.tell(number);
  }

  /** Tells the journal of what was written, if the file was. */
  void announce(long number, Caller caller) throws FsException {
    Inode inode = state.find(number);
    if (inode != null && (inode.is(Inode.WRITING) || !inode.is(Inode.ANNOUNCED))) {
      live.exclusively(number, file -> contents.announce(file, caller));
    }
  }

  void fsync(long number) throws FsException {
    Inode found = nodes.find(number);
    if (found.isRegular() && found.generation() != 0) {
      live.exclusively(
          number,
          file -> {
            Inode inode = state.inode(number);
            contents.load(file, inode);
            contents.sync(file, inode);
            return inode;
          });
    }
    state.sync();
    untold.tell(number);
  }

  /** The kernel says so some time after close(2), when others may be writing again. */
  void release(long number, long handle) throws FsException {
    LiveFile file = handles.remove(handle);
    try {
      if ((handle & WRITES) != 0) {
        if (file != null) {
          file.writers.decrementAndGet();
        }
        announceLast(number);
      }
    } finally {
      if (file != null) {
        live.release(file);
      }
    }
  }

  /** Tells the journal of what was written, unless it is still open for writing. */
  private void announceLast(long number) throws FsException {
    Inode inode = state.find(number);
    if (inode != null && (inode.is(Inode.WRITING) || !inode.is(Inode.ANNOUNCED))) {
      live.exclusively(
          number, file -> file.writers.get() == 0 && contents.announce(file, owner(inode)));
    }
  }

  /** Who a change is made as that no process asked for. */
  static Caller owner(Inode inode) {
    return new Caller(0, inode.attributes().uid(), inode.attributes().gid(), 0);
  }
}
