package io.pmfs.writable;

import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.tier.ReadResult;
import io.pmfs.tier.ReadSink;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.time.InstantSource;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What files contain: reads, writes and changes of size, by any handle. A handle of a former
 * process may repeat what that process did. Safe for use by many threads.
 */
@SuppressWarnings("try") // What is held is not otherwise used.
public final class FileData {
  private static final Logger log = LoggerFactory.getLogger(FileData.class);

  public static final long MAX_SIZE = Long.MAX_VALUE - 4096;

  private final State state;
  private final Nodes nodes;
  private final LiveFiles live;
  private final Descriptors descriptors;
  private final LocalFiles local;
  private final Contents contents;
  private final Rights rights;
  private final OutputCalls calls;
  private final InstantSource clock;

  public FileData(
      State state,
      Nodes nodes,
      LiveFiles live,
      Descriptors descriptors,
      LocalFiles local,
      Contents contents,
      Rights rights,
      OutputCalls calls,
      InstantSource clock) {
    this.state = state;
    this.nodes = nodes;
    this.live = live;
    this.descriptors = descriptors;
    this.local = local;
    this.contents = contents;
    this.rights = rights;
    this.calls = calls;
    this.clock = clock;
  }

  // ---- reading

  public void read(long number, long offset, int size, ReadSink sink) throws FsException {
    LiveFile file = live.acquire(number);
    try {
      Inode inode = nodes.find(number);
      if (!inode.isRegular()) {
        throw new FsException(inode.isDirectory() ? Errno.EISDIR : Errno.EINVAL, "inode " + number);
      }
      while (!tryRead(file, offset, size, sink)) {
        log.debug("inode {} is read again from where it is now", number);
      }
    } finally {
      live.release(file);
    }
  }

  /** Returns false if the data were taken elsewhere meanwhile. */
  private boolean tryRead(LiveFile file, long offset, int size, ReadSink sink) throws FsException {
    try {
      if (!readIfReady(file, offset, size, sink)) {
        file.lock.writeLock().lock();
        try {
          Inode inode = prepareRead(file, state.inode(file.number));
          readFrom(file, inode, offset, size, sink);
        } finally {
          file.lock.writeLock().unlock();
        }
      }
      return true;
    } catch (FsException e) {
      if (!descriptors.isReplaced(file, e) && !descriptors.isUnneeded(file, e)) {
        throw e;
      }
      return false;
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
      boolean isWriting = inode.is(Inode.WRITING);
      return file.generation == inode.generation()
          && (file.remote == null ? file.file >= 0 && (!isWriting || file.size >= 0) : !isWriting);
    }
    Stat seen = inode.seen();
    Stat open = file.sourceStat;
    return file.generation == 0
        && file.source >= 0
        && open != null
        && (seen == null || open.isSameFile(seen));
  }

  private Inode prepareRead(LiveFile file, Inode inode) throws FsException {
    Inode now = descriptors.load(file, inode);
    if (now.generation() == 0 && (now.hasHome() || now.attributes().size() > 0)) {
      descriptors.openSource(file, now);
    }
    return now;
  }

  private void readFrom(LiveFile file, Inode inode, long offset, int size, ReadSink sink)
      throws FsException {
    long end = Descriptors.size(file, inode);
    int wanted = (int) Math.min(size, Math.max(0, end - offset));
    if (inode.generation() == 0 && file.source >= 0 && wanted > 0) {
      readFromSource(file.source, offset, wanted, sink);
      return;
    }
    int from = inode.generation() != 0 ? file.file : file.source;
    RemoteFile remote = inode.generation() != 0 ? file.remote : null;
    ByteBuffer buffer = sink.buffer(wanted);
    int count = 0;
    buffer.position(0).limit(wanted);
    if (wanted > 0 && remote != null) {
      count = remote.read(buffer, offset);
    } else if (wanted > 0 && from >= 0) {
      count = calls.read(from, buffer, offset);
    } else if (wanted > 0 && inode.generation() != 0) {
      throw descriptors.gone(file);
    }
    pass(buffer.position(0).limit(count), sink);
  }

  private static void pass(ByteBuffer bytes, ReadSink sink) throws FsException {
    int count = bytes.remaining();
    sink.expect(count);
    if (count > 0) {
      try {
        sink.accept(new ReadResult.Bytes(bytes));
      } catch (IOException e) {
        throw new FsException(Errno.EIO, "answering a read", e);
      }
    }
  }

  /** Into other memory than the answer's: a read that hangs may outlive its request. */
  private void readFromSource(int from, long offset, int wanted, ReadSink sink) throws FsException {
    ByteBuffer bytes = descriptors.readSource(from, offset, wanted);
    try {
      pass(bytes, sink);
    } finally {
      CopyBuffers.give(bytes);
    }
  }

  // ---- writing

  public int write(
      long number,
      OpenFiles.Origin origin,
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
        Inode inode = descriptors.load(file, state.inode(number));
        at = Descriptors.size(file, inode);
        if (origin.isFormer() && isWritten(file, inode, offset, bytes, at)) {
          return length; // A former process did it, and died before it could say so.
        }
      }
      if (at < 0 || at > MAX_SIZE - length) {
        throw new FsException(Errno.EFBIG, "inode " + number);
      }
      Inode inode = contents.prepare(file, at, Long.MAX_VALUE);
      if (origin.isOnlyWritten() && inode.is(Inode.XATTRS)) {
        contents.dropCapabilities(number, caller);
      }
      boolean grows = at == file.size;
      long start = at;
      contents.change(file, length, (place, to) -> local.write(place, to, bytes, start));
      file.onlyGrew &= grows;
      file.size = Math.max(file.size, at + length);
      file.blocks = Math.max(file.blocks, 8 * ((file.countedBytes + length + 4095) / 4096));
      Instant now = clock.instant();
      file.modified = now;
      file.changed = now;
      descriptors.written(file, length);
      if (clearSetId) {
        rights.clearSetId(inode, caller);
      }
      return length;
    } finally {
      file.lock.writeLock().unlock();
      live.release(file);
    }
  }

  private boolean isWritten(LiveFile file, Inode inode, long offset, ByteBuffer bytes, long size)
      throws FsException {
    int length = bytes.remaining();
    boolean isHere = inode.generation() != 0 && file.remote == null && file.file >= 0;
    if (!isHere || offset < 0 || offset + length != size) {
      return false;
    }
    ByteBuffer there = ByteBuffer.allocateDirect(length);
    int count = calls.read(file.file, there, offset);
    return count == length && there.flip().equals(bytes);
  }

  /** Sets the size. The caller holds the file's lock. */
  public void truncate(LiveFile file, long size, boolean clearSetId, Caller caller)
      throws FsException {
    if (size < 0 || size > MAX_SIZE) {
      throw new FsException(size < 0 ? Errno.EINVAL : Errno.EFBIG, "size " + size);
    }
    Inode inode = descriptors.load(file, state.inode(file.number));
    long before = Descriptors.size(file, inode);
    Inode prepared = contents.prepare(file, Math.min(size, before), size);
    if (size != before || file.size != size) {
      if (size > 0 || file.file >= 0) {
        contents.change(file, 0, (place, to) -> local.truncate(place, to, size));
      }
      file.size = size;
      file.onlyGrew = false;
      descriptors.recount(file);
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
  public Node setAttributes(long number, NewAttributes wanted, Caller caller) throws FsException {
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

  public void allocate(long number, int mode, long offset, long length, Caller caller)
      throws FsException {
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
          contents.change(
              file,
              punches ? 0 : length,
              (place, to) -> local.allocate(place, to, mode, offset, length));
          descriptors.recount(file);
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
    Inode inode = descriptors.load(file, state.inode(file.number));
    return Descriptors.size(file, inode);
  }

  public long copyRange(
      long number,
      long offset,
      long toNumber,
      OpenFiles.Origin origin,
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
      return copyRange(number, offset, toNumber, origin, toOffset, length, buffer, caller);
    } finally {
      CopyBuffers.give(buffer);
    }
  }

  private long copyRange(
      long number,
      long offset,
      long toNumber,
      OpenFiles.Origin origin,
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
      write(toNumber, origin, toOffset + done, piece.bytes(), false, caller.uid() != 0, caller);
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

    /** What was not read into this memory comes there. */
    @SuppressWarnings("ReferenceEquality") // The same memory, not equal bytes.
    @Override
    public void accept(ReadResult piece) throws IOException {
      filled = piece.size();
      boolean isHere = piece instanceof ReadResult.Bytes bytes && bytes.buffer() == buffer;
      if (!isHere) {
        piece.copyTo(buffer.clear());
      }
    }

    int filled() {
      return filled;
    }

    ByteBuffer bytes() {
      return buffer.duplicate().position(0).limit(filled);
    }
  }

  public long seek(long number, long offset, int whence) throws FsException {
    return live.exclusively(
        number,
        file -> {
          Inode inode = prepareRead(file, nodes.find(number));
          long size = Descriptors.size(file, inode);
          if (offset < 0 || offset >= size) {
            throw new FsException(Errno.ENXIO, "offset " + offset);
          }
          int from = inode.generation() != 0 ? file.file : file.source;
          if (inode.generation() != 0 && file.remote != null) {
            return whence == OutputCalls.SEEK_HOLE ? size : offset; // Its node knows of holes.
          }
          if (from < 0) {
            return whence == OutputCalls.SEEK_HOLE ? offset : size;
          }
          return Math.min(size, calls.seek(from, offset, whence));
        });
  }
}
