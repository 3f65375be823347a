package io.pmfs.writable.remote;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.SourceVersion;
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
 * A data file that this node keeps for the owner of the mount. It is open while it is in use.
 * Writers hold its lock exclusively, readers hold it shared; never call the owner while holding it.
 * Thread-safe.
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

  /** How often this node has stopped writing and reported the state to the owner. */
  private long pauses;

  /** Whether it only grew since this node last asked the owner. */
  private boolean onlyGrew;

  /** Whether the owner has the content, or it is no longer needed. */
  private volatile boolean isGone;

  /**
   * The owner's last attributes while it is in use: programs that keep reading while the owner is
   * away need them.
   */
  private volatile @Nullable Attributes recorded;

  KeptFile(NodeData.Id id, LocalPlace place, InstantSource clock) {
    this.id = id;
    this.place = place;
    this.data = place.file(id);
    this.clock = clock;
  }

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

  /** Whether it was not written since it was created, and never frozen. */
  public boolean isUntouched() {
    lock.readLock().lock();
    try {
      return isWriting && size == 0 && pauses == 0;
    } finally {
      lock.readLock().unlock();
    }
  }

  /** Whether it was frozen before anything was written. */
  boolean isBlank() {
    lock.readLock().lock();
    try {
      return !isWriting && size == 0;
    } finally {
      lock.readLock().unlock();
    }
  }

  /**
   * Whether the owner's version of the file is this content: the one that was recorded, or what
   * this node has written since.
   */
  boolean isStill(SourceVersion owners) {
    lock.readLock().lock();
    try {
      Attributes last = recorded;
      return isWriting
          || (last != null && owners.equals(last.version()))
          || owners.equals(new SourceVersion(size, modified(last)));
    } finally {
      lock.readLock().unlock();
    }
  }

  /** The owner, whose clock differs, does not set the time back. */
  private Instant modified(@Nullable Attributes last) {
    return last != null && last.modificationTime().isAfter(modified)
        ? last.modificationTime()
        : modified;
  }

  @Nullable Attributes recorded() {
    return recorded;
  }

  void record(Attributes attributes) {
    recorded = attributes;
  }

  /** The attributes while this node writes the file; null if it does not. */
  public @Nullable Attributes shown(Attributes recorded) throws FsException {
    lock.readLock().lock();
    try {
      return isWriting ? withContent(recorded) : null;
    } finally {
      lock.readLock().unlock();
    }
  }

  /** The attributes as far as this node knows, while the file is in use; else null. */
  @Nullable Attributes known() throws FsException {
    lock.readLock().lock();
    try {
      Attributes last = recorded;
      return last == null ? null : withContent(last);
    } finally {
      lock.readLock().unlock();
    }
  }

  /** Called with the lock held. */
  private @Nullable Attributes withContent(Attributes recorded) throws FsException {
    if (!data.isOpen()) {
      return null;
    }
    Attributes shown = recorded.withSize(size, data.status().blocks());
    if (!modified.isAfter(recorded.modificationTime())) {
      return shown;
    }
    shown = shown.withTimes(recorded.accessTime(), modified);
    return modified.isAfter(recorded.changeTime()) ? shown.withChangeTime(modified) : shown;
  }

  // ---- uses

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
   * Adds a use; the file is open until all uses have ended.
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
      recorded = null;
    }
  }

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

  /** Thrown when the owner must be asked before a change. */
  public static final class AskFirst extends Exception {
    /** The first byte that will change. */
    public final long low;

    /** Whether the file only grew since the owner was last asked. */
    public final boolean onlyGrew;

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

  /** The owner has answered {@link OwnedFileSystem#resume}; a file frozen since stays frozen. */
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
   * @param isAgain whether an earlier process may have appended the same bytes
   * @return false if the owner must do it, because there is no room or it has the content
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
      touch();
      data.wrote(more);
      return true;
    } finally {
      lock.writeLock().unlock();
    }
  }

  /** Each content has a later time than the one before, also if the owner's clock is ahead. */
  private void touch() {
    Instant before = modified(recorded);
    Instant now = clock.instant();
    modified = now.isAfter(before) ? now : before.plusNanos(1);
  }

  private interface Change {
    void make() throws FsException;
  }

  /** Makes a change; returns false if the place has no room or fails. */
  private boolean isTaken(Change change) throws FsException {
    try {
      change.make();
      return true;
    } catch (FsException e) {
      if (!DataPlaces.isRefusal(e)) {
        throw e;
      }
      // The owner takes over exactly what was acknowledged.
      data.cutOff(size);
      return false;
    }
  }

  /** Sets the size; returns false if the owner must do it. */
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
      touch();
      return true;
    } finally {
      lock.writeLock().unlock();
    }
  }

  /**
   * Allocates room.
   *
   * @param mode 0 or FALLOC_KEEP_SIZE
   * @return false if the owner must do it
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
      touch();
      return true;
    } finally {
      lock.writeLock().unlock();
    }
  }

  /** Reads into the buffer; fewer bytes only at the end of the file. Returns -1 if it is closed. */
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

  /** An action on the file while it is open and locked. */
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
   * Stops writing when a program closes the file; the owner must be asked before the next write.
   *
   * @return the state to report; null if this node did not write, or the owner has the content
   */
  NodeData.@Nullable Paused pause() throws FsException {
    lock.writeLock().lock();
    try {
      if (!isWriting || isGone) {
        return null;
      }
      NodeData.Frozen frozen = freeze(false);
      return new NodeData.Paused(id, pauses, frozen);
    } finally {
      lock.writeLock().unlock();
    }
  }

  /** The owner must be asked before the next write. */
  void stop() {
    lock.writeLock().lock();
    try {
      isWriting = false;
      pauses++;
    } finally {
      lock.writeLock().unlock();
    }
  }

  NodeData.Frozen freeze(boolean sync) throws FsException {
    return exclusively(
        () -> {
          stop();
          if (sync) {
            data.sync();
          }
          Attributes there = data.status();
          keepTime(there);
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

  /** The next process goes on from a time that this node's clock has not reached. */
  private void keepTime(Attributes there) throws FsException {
    if (modified.isAfter(clock.instant())) {
      try {
        data.setTimes(there.accessTime(), modified);
      } catch (FsException e) {
        if (!DataPlaces.isRefusal(e)) {
          throw e;
        }
      }
    }
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
          Attributes last = recorded;
          recorded = last == null ? null : last.withTimes(accessTime, modificationTime);
          return modified;
        });
  }

  /** Copies a range to an open file, while this node's programs may read it. */
  void copy(int to, long from, long end) throws FsException {
    acquire();
    try {
      data.copyTo(to, from, end);
    } finally {
      release();
    }
  }
}
