package io.pmfs.writable.data;

import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.places.CopyBuffers;
import io.pmfs.writable.places.DataPlaces;
import io.pmfs.writable.tree.Extended;
import io.pmfs.writable.tree.Nodes;
import io.pmfs.writable.tree.OutputTree;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reads, writes and size changes of files, by any handle. A handle of an earlier process may repeat
 * what that process did. Thread-safe.
 */
@SuppressWarnings("try")
public final class FileData {
  private static final Logger log = LoggerFactory.getLogger(FileData.class);

  private final State state;
  private final Nodes nodes;
  private final OutputFiles files;
  private final Contents contents;
  private final Rights rights;
  private final Extended extended;

  public FileData(
      State state, OutputTree tree, OutputFiles files, Contents contents, Rights rights) {
    this.state = state;
    this.nodes = tree.nodes();
    this.files = files;
    this.contents = contents;
    this.rights = rights;
    this.extended = tree.extended();
  }

  // ---- reading

  public void read(long number, long offset, int size, ReadSink sink) throws FsException {
    OutputFile file = files.acquire(number);
    try {
      Inode inode = nodes.find(number);
      if (!inode.isRegular()) {
        throw new FsException(inode.isDirectory() ? Errno.EISDIR : Errno.EINVAL, "inode " + number);
      }
      while (!tryRead(file, offset, size, sink)) {
        log.debug("inode {} has moved; retrying the read", number);
      }
    } finally {
      files.release(file);
    }
  }

  /** Returns false if the data were moved meanwhile. */
  private boolean tryRead(OutputFile file, long offset, int size, ReadSink sink)
      throws FsException {
    try {
      if (!readIfReady(file, offset, size, sink)) {
        file.await(file.lock().writeLock());
        try {
          Inode inode = file.prepareRead(state.inode(file.number()));
          readFrom(file, inode, offset, size, sink);
        } finally {
          file.lock().writeLock().unlock();
        }
      }
      return true;
    } catch (FsException e) {
      if (!file.isToBeReadAgain(e)) {
        throw e;
      }
      return false;
    }
  }

  /** Reads under the shared lock if the file is open already. */
  private boolean readIfReady(OutputFile file, long offset, int size, ReadSink sink)
      throws FsException {
    file.await(file.lock().readLock());
    try {
      Inode inode = state.inode(file.number());
      if (!file.isReadable(inode)) {
        return false;
      }
      readFrom(file, inode, offset, size, sink);
      return true;
    } finally {
      file.lock().readLock().unlock();
    }
  }

  private static void readFrom(OutputFile file, Inode inode, long offset, int size, ReadSink sink)
      throws FsException {
    int wanted = (int) Math.min(size, Math.max(0, file.size(inode) - offset));
    if (inode.generation() == 0 && wanted > 0) {
      readFromSource(file, offset, wanted, sink);
      return;
    }
    ByteBuffer buffer = sink.buffer(wanted);
    buffer.position(0).limit(wanted);
    int count = wanted > 0 ? file.read(buffer, offset) : 0;
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

  /** Reads into separate memory: a hanging read may outlive its request. */
  private static void readFromSource(OutputFile file, long offset, int wanted, ReadSink sink)
      throws FsException {
    ByteBuffer bytes = file.readSource(offset, wanted);
    try {
      pass(bytes, sink);
    } finally {
      CopyBuffers.give(bytes);
    }
  }

  // ---- writing

  public int write(
      long number,
      Handles.Origin origin,
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
    try (OutputFiles.Locked locked = files.lock(number)) {
      OutputFile file = locked.file();
      long at = offset;
      if (append) {
        Inode inode = file.load(state.inode(number));
        at = file.size(inode);
        // An earlier process did this and died before it answered.
        if (origin.isFormer() && offset >= 0 && offset + length == at && file.has(bytes, offset)) {
          return length;
        }
      }
      if (at < 0 || at > DataPlaces.MAX_SIZE - length) {
        throw new FsException(Errno.EFBIG, "inode " + number);
      }
      Inode inode = contents.prepare(file, at, Long.MAX_VALUE);
      if (origin.isOnlyWritten() && inode.is(Inode.XATTRS)) {
        // Linux also does this before each write; the source's attribute is dropped when the
        // content is written there.
        extended.dropCapabilities(number, caller);
      }
      long start = append ? file.size() : at; // Another program may have changed the size.
      contents.change(file, length, data -> data.write(bytes, start));
      file.wrote(start, length, state.now());
      if (clearSetId) {
        rights.clearSetId(inode, caller);
      }
      return length;
    }
  }

  /** Sets the size. The caller holds the file's lock. */
  void truncate(OutputFile file, long size, boolean clearSetId, Caller caller) throws FsException {
    if (size < 0 || size > DataPlaces.MAX_SIZE) {
      throw new FsException(size < 0 ? Errno.EINVAL : Errno.EFBIG, "size " + size);
    }
    Inode inode = file.load(state.inode(file.number()), size);
    long before = file.size(inode);
    Inode prepared = contents.prepare(file, Math.min(size, before), size);
    if (size != before || file.size() != size) {
      if (size > 0 || file.here().isOpen()) {
        contents.change(file, 0, data -> data.truncate(size));
      }
      file.resized(size);
    }
    file.touch(state.now());
    if (clearSetId) {
      rights.clearSetId(prepared, caller);
    }
    if (caller.unique() != 0) {
      try (State.Held held = state.hold()) {
        State.Update update = state.update();
        update.result(caller.unique(), file.number());
        update.commit();
      }
    }
  }

  /** Sets the size, if requested, and then the other attributes. */
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
    inode.protection().requireChangeable("inode " + number);
    try (OutputFiles.Locked locked = files.lock(number)) {
      truncate(locked.file(), size, wanted.clearSetId(), caller);
      if (wanted.handle() == 0 && !locked.file().hasWriter()) {
        files.announce(locked.file(), caller); // truncate(2) is not followed by a close.
      }
    }
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
    if (offset > DataPlaces.MAX_SIZE - length) {
      throw new FsException(Errno.EFBIG, "fallocate up to " + (offset + length));
    }
    try (OutputFiles.Locked locked = files.lock(number)) {
      OutputFile file = locked.file();
      long before = file.size(file.load(state.inode(number)));
      long low = punches || zeroes ? Math.min(offset, before) : before;
      Inode inode = contents.prepare(file, low, Long.MAX_VALUE);
      contents.change(file, punches ? 0 : length, data -> data.allocate(mode, offset, length));
      file.resized(keeps ? file.size() : Math.max(file.size(), offset + length));
      file.touch(state.now());
      if (caller.uid() != 0) {
        rights.clearSetId(inode, caller);
      }
    }
  }

  public long copyRange(
      long number,
      long offset,
      long toNumber,
      Handles.Origin origin,
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
      Handles.Origin origin,
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

    /** Copies into the reply what was read into other memory. */
    @SuppressWarnings("ReferenceEquality") // Identity, not equal bytes.
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
    try (OutputFiles.Locked locked = files.lock(number)) {
      OutputFile file = locked.file();
      return file.seek(file.prepareRead(nodes.find(number)), offset, whence);
    }
  }
}
