package io.pmfs.writable.remote;

import io.pmfs.metadata.Attributes;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.places.CopyBuffers;
import io.pmfs.writable.places.DataPlaces;
import io.pmfs.writable.places.LocalData;
import io.pmfs.writable.places.LocalPlace;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.time.InstantSource;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.jspecify.annotations.Nullable;

/**
 * A data file that this node keeps for the owner of the mount. It is open while something uses it.
 * Writers hold its lock exclusively, readers hold it shared; nobody asks the owner while holding
 * it. Safe for use by many threads.
 */
public final class KeptFile {
  final NodeData.Id id;
  private final LocalPlace place;
  private final LocalData data;
  private final InstantSource clock;
  private final ReentrantReadWriteLock lock = new ReentrantReadWriteLock();

  // GUARDED_BY(lock)
  private int users;
  private long size;
  private Instant modified = Instant.EPOCH;

  /** Whether this node may write without asking. */
  private boolean isWriting;

  /** The first byte that it may change. */
  private long floor;

  /** How often this node has stopped writing, as the owner learned what the file is. */
  private long pauses;

  /** Whether it only grew since this node asked the owner last. */
  private boolean onlyGrew;

  /** Whether the owner has the content, or nobody needs it. */
  private volatile boolean isGone;

  KeptFile(NodeData.Id id, LocalPlace place, InstantSource clock) {
    this.id = id;
    this.place = place;
    this.data = place.file(id);
    this.clock = clock;
  }

  /** The number of its inode and its generation. */
  public NodeData.Id id() {
    return id;
  }

  boolean isGone() {
    return isGone;
  }

  void end() {
    isGone = true;
  }

  /** Whether no program here writes it. */
  public boolean isIdle() {
    lock.readLock().lock();
    try {
      return users == 0 || !isWriting;
    } finally {
      lock.readLock().unlock();
    }
  }

  /** Whether it is as it was made, and the owner has not asked. */
  public boolean isUntouched() {
    lock.readLock().lock();
    try {
      return isWriting && size == 0 && pauses == 0;
    } finally {
      lock.readLock().unlock();
    }
  }

  /** What a program sees while this node writes the file; null if it does not. */
  public @Nullable Attributes shown(Attributes recorded) throws FsException {
    lock.readLock().lock();
    try {
      if (!isWriting || !data.isOpen()) {
        return null;
      }
      Attributes shown = recorded.withSize(size, data.status().blocks());
      if (!modified.isAfter(recorded.modificationTime())) {
        return shown;
      }
      shown = shown.withTimes(recorded.accessTime(), modified);
      return modified.isAfter(recorded.changeTime()) ? shown.withChangeTime(modified) : shown;
    } finally {
      lock.readLock().unlock();
    }
  }

  // ---- uses

  /** Makes the file, which has a use from now on. */
  void make() throws FsException {
    lock.writeLock().lock();
    try {
      data.make();
      users = 1;
      isWriting = true;
      onlyGrew = true;
      modified = clock.instant();
    } finally {
      lock.writeLock().unlock();
    }
  }

  /**
   * A handle uses the file: it is open until as many uses have ended.
   *
   * @throws FsException with ENOENT if it was removed meanwhile
   */
  public void acquire() throws FsException {
    lock.writeLock().lock();
    try {
      open();
      users++;
    } finally {
      lock.writeLock().unlock();
    }
  }

  private void open() throws FsException {
    if (!data.isOpen()) {
      data.open();
      if (!data.isOpen()) {
        throw new FsException(Errno.ENOENT, "the data of inode " + id.inode() + " were removed");
      }
      Attributes there = data.status();
      size = there.size();
      modified = there.modificationTime();
    }
  }

  /** Ends a use. */
  public void release() {
    lock.writeLock().lock();
    try {
      users--;
      closeUnused();
    } finally {
      lock.writeLock().unlock();
    }
  }

  private void closeUnused() {
    if (users == 0) {
      data.close();
    }
  }

  /** Ends all uses. */
  void close() {
    lock.writeLock().lock();
    try {
      users = 0;
      closeUnused();
    } finally {
      lock.writeLock().unlock();
    }
  }

  void remove() throws FsException {
    place.remove(id);
  }

  // ---- by this node's programs; the file is in use

  /** The owner must be asked before a change. */
  public static final class AskFirst extends Exception {
    private static final long serialVersionUID = 1;

    /** The first byte that is to change. */
    public final long low;

    /** Whether the file only grew since the owner was asked last. */
    public final boolean onlyGrew;

    /** How often this node has stopped writing. */
    final long pauses;

    private AskFirst(KeptFile file, long low) {
      super("the owner must be asked", null, false, false);
      this.low = low;
      this.onlyGrew = file.onlyGrew;
      this.pauses = file.pauses;
    }
  }

  private void require(long low) throws AskFirst {
    if (!isWriting || low < floor) {
      throw new AskFirst(this, low);
    }
  }

  /**
   * The owner has answered {@link OwnedFileSystem#resume}; a file that was frozen meanwhile stays
   * so.
   */
  public void resume(AskFirst asked, long lowest) {
    lock.writeLock().lock();
    try {
      if (pauses == asked.pauses) {
        isWriting = true;
        floor = lowest;
        onlyGrew = true;
      }
    } finally {
      lock.writeLock().unlock();
    }
  }

  /**
   * Writes all of the buffer.
   *
   * @param isAgain whether a former process may have appended the same
   * @return false if there is no room, or the owner has the content: it has to write
   */
  public boolean write(long offset, ByteBuffer bytes, boolean append, boolean isAgain)
      throws FsException, AskFirst {
    lock.writeLock().lock();
    try {
      if (isGone) {
        return false;
      }
      int length = bytes.remaining();
      if (append && isAgain && offset >= 0 && offset + length == size && data.has(bytes, offset)) {
        return true;
      }
      long at = append ? size : offset;
      if (at < 0 || at > DataPlaces.MAX_SIZE - length) {
        throw new FsException(Errno.EFBIG, "inode " + id.inode());
      }
      long more = Math.max(0, at + length - size);
      if (!place.hasRoom(more)) {
        return false;
      }
      require(at);
      if (!isTaken(() -> data.write(bytes, at))) {
        return false;
      }
      onlyGrew &= at == size;
      size = Math.max(size, at + length);
      modified = clock.instant();
      data.wrote(more);
      return true;
    } finally {
      lock.writeLock().unlock();
    }
  }

  /** A change of the data file. */
  private interface Change {
    void make() throws FsException;
  }

  /** Makes a change; returns false if the place has no room for it, or fails. */
  private boolean isTaken(Change change) throws FsException {
    try {
      change.make();
      return true;
    } catch (FsException e) {
      if (!DataPlaces.isRefusal(e)) {
        throw e;
      }
      // The owner takes what there is: not more than was answered.
      data.cutOff(size);
      return false;
    }
  }

  /** Sets the size; returns false if there is no room, or the owner has the content. */
  public boolean truncate(long next) throws FsException, AskFirst {
    lock.writeLock().lock();
    try {
      if (isGone) {
        return false;
      }
      require(Math.min(next, size));
      if (!isTaken(() -> data.truncate(next))) {
        return false;
      }
      onlyGrew = false;
      size = next;
      modified = clock.instant();
      return true;
    } finally {
      lock.writeLock().unlock();
    }
  }

  /**
   * Allocates room.
   *
   * @param mode 0 or FALLOC_KEEP_SIZE
   * @return false if there is none, or the owner has the content: it has to allocate
   */
  public boolean allocate(int mode, long offset, long length) throws FsException, AskFirst {
    lock.writeLock().lock();
    try {
      if (offset > DataPlaces.MAX_SIZE - length) {
        throw new FsException(Errno.EFBIG, "fallocate up to " + (offset + length));
      }
      if (isGone || !place.hasRoom(length)) {
        return false;
      }
      require(size);
      if (!isTaken(() -> data.allocate(mode, offset, length))) {
        return false;
      }
      onlyGrew = false;
      size = mode == 0 ? Math.max(size, offset + length) : size;
      modified = clock.instant();
      return true;
    } finally {
      lock.writeLock().unlock();
    }
  }

  /** Reads into the buffer; fewer bytes at the end of the file only. Returns -1 if it is closed. */
  public int read(ByteBuffer destination, long offset) throws FsException {
    lock.readLock().lock();
    try {
      if (!data.isOpen()) {
        return -1;
      }
      long left = Math.max(0, size - offset);
      if (left < destination.remaining()) {
        destination.limit(destination.position() + (int) left);
      }
      return destination.hasRemaining() ? data.read(destination, offset) : 0;
    } finally {
      lock.readLock().unlock();
    }
  }

  // ---- by the owner

  /** Something done with the file while it is open and locked. */
  private interface Work<T> {
    T run() throws FsException;
  }

  private <T> T exclusively(Work<T> work) throws FsException {
    lock.writeLock().lock();
    try {
      open();
      return work.run();
    } finally {
      closeUnused();
      lock.writeLock().unlock();
    }
  }

  /**
   * Stops writing until the owner has been asked: a program closes the file.
   *
   * @return what the file is; null if this node did not write to it, or the owner has the content
   */
  NodeData.@Nullable Told pause() throws FsException {
    lock.writeLock().lock();
    try {
      if (!isWriting || isGone) {
        return null;
      }
      NodeData.Frozen frozen = freeze(false);
      return new NodeData.Told(id, pauses, frozen);
    } finally {
      lock.writeLock().unlock();
    }
  }

  NodeData.Frozen freeze(boolean sync) throws FsException {
    return exclusively(
        () -> {
          isWriting = false;
          pauses++;
          if (sync) {
            data.sync();
          }
          Attributes there = data.status();
          data.recount();
          return new NodeData.Frozen(
              there.size(),
              there.blocks(),
              modified,
              onlyGrew,
              there.size() > NodeData.SMALL_BYTES
                  ? null
                  : ByteBuffer.wrap(bytes(0, (int) there.size())));
        });
  }

  byte[] read(long offset, int count) throws FsException {
    return exclusively(() -> bytes(offset, count));
  }

  private byte[] bytes(long offset, int wanted) throws FsException {
    ByteBuffer buffer = CopyBuffers.take();
    try {
      buffer.limit(wanted);
      int count = wanted == 0 ? 0 : data.read(buffer, offset);
      byte[] bytes = new byte[count];
      buffer.get(0, bytes);
      return bytes;
    } finally {
      CopyBuffers.give(buffer);
    }
  }

  void setTimes(Instant accessTime, Instant modificationTime) throws FsException {
    exclusively(
        () -> {
          data.setTimes(accessTime, modificationTime);
          modified = modificationTime;
          return modified;
        });
  }

  private void requireSize(long end) throws FsException {
    lock.readLock().lock();
    try {
      if (end > size) {
        throw new FsException(Errno.EIO, "the data end before " + end);
      }
    } finally {
      lock.readLock().unlock();
    }
  }

  /** Copies a range to an open file, beside this node's readers and writers. */
  void copy(int to, long from, long end) throws FsException {
    acquire();
    try {
      requireSize(end);
      data.copyTo(to, from, end);
    } finally {
      release();
    }
  }
}
