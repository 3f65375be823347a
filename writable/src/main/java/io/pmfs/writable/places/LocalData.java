package io.pmfs.writable.places;

import io.pmfs.metadata.Attributes;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.NodeData.Frozen;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.journal.Inode;
import java.nio.ByteBuffer;
import java.time.Instant;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A data file that this node keeps. The caller holds the lock of its file. */
public final class LocalData implements DataFile {
  private static final Logger log = LoggerFactory.getLogger(LocalData.class);

  /** The unit of st_blocks (stat(2)). */
  static final long BLOCK_BYTES = 512;

  private static final long RECOUNT_BYTES = 8L << 20;

  private final LocalPlace place;
  private final OutputCalls calls;
  private final NodeData.Id id;
  private int descriptor = -1;

  /** Its counted disk usage: exact when last measured, estimated since. */
  private long countedBytes;

  private long uncountedBytes;
  private boolean isNameSynced;
  private boolean mayBeSynced;

  LocalData(LocalPlace place, NodeData.Id id) {
    this.place = place;
    this.calls = place.calls;
    this.id = id;
  }

  @Override
  public NodeData.Id id() {
    return id;
  }

  @Override
  public LocalPlace place() {
    return place;
  }

  @Override
  public boolean isHere() {
    return true;
  }

  public boolean isOpen() {
    return descriptor >= 0;
  }

  @Override
  public boolean isThere() {
    return isOpen();
  }

  @Override
  public boolean isReadable(boolean isWriting) {
    return isOpen();
  }

  // ---- opening and closing

  /** Opens it, and creates it if it does not exist. */
  public void make() throws FsException {
    if (descriptor < 0) {
      descriptor = place.create(id);
    }
  }

  @Override
  public void open() throws FsException {
    if (descriptor >= 0) {
      return;
    }
    try {
      descriptor = place.open(id, OutputCalls.O_RDWR);
      mayBeSynced = true;
      countedBytes = status().blocks() * BLOCK_BYTES;
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
    }
  }

  void openForReading() throws FsException {
    descriptor = place.open(id, OutputCalls.O_RDONLY);
  }

  /** The last user of a file closes it without the file's lock. */
  @Override
  public synchronized void close() {
    if (descriptor >= 0) {
      if (uncountedBytes != 0) {
        recountQuietly();
      }
      place.close(descriptor);
      descriptor = -1;
      uncountedBytes = 0;
    }
  }

  /** Measures and closes a data file that is to be removed. */
  public void closeCounted() {
    if (descriptor >= 0) {
      recountQuietly();
    }
    close();
  }

  // ---- reading

  @Override
  public int read(ByteBuffer destination, long offset) throws FsException {
    if (descriptor < 0) {
      throw gone();
    }
    return calls.read(descriptor, destination, offset);
  }

  /** The error when content is needed from a data file that no longer exists. */
  public FsException gone() {
    return new FsException(
        Errno.EIO, "inode %d: its data file is gone from %s".formatted(id.inode(), place.name()));
  }

  /** Whether it has these bytes at an offset. */
  public boolean has(ByteBuffer bytes, long offset) throws FsException {
    ByteBuffer there = ByteBuffer.allocateDirect(bytes.remaining());
    int count = calls.read(descriptor, there, offset);
    return count == bytes.remaining() && there.flip().equals(bytes);
  }

  @Override
  public long seek(long offset, int whence) throws FsException {
    if (descriptor < 0) {
      return whence == OutputCalls.SEEK_HOLE ? offset : Long.MAX_VALUE;
    }
    return calls.seek(descriptor, offset, whence);
  }

  public Attributes status() throws FsException {
    return calls.status(descriptor, Inode.NO_NAME).attributes();
  }

  long size() throws FsException {
    return status().size();
  }

  @Override
  public Frozen freeze(Frozen empty) throws FsException {
    if (descriptor < 0) {
      return empty;
    }
    Attributes found = status();
    return new Frozen(found.size(), found.blocks(), found.modificationTime(), true, null);
  }

  // ---- changes

  /** Writes all of the buffer, which is unchanged if that fails. The place may refuse. */
  public void write(ByteBuffer bytes, long offset) throws FsException {
    int start = bytes.position();
    place.asked(
        () -> {
          try {
            calls.write(descriptor, bytes, offset);
            return descriptor;
          } catch (FsException e) {
            bytes.position(start);
            throw e;
          }
        });
  }

  /** Sets its size. The place may refuse. */
  public void truncate(long size) throws FsException {
    place.asked(
        () -> {
          calls.truncate(descriptor, size);
          return descriptor;
        });
  }

  /** Allocates room or punches holes. The place may refuse. */
  public void allocate(int mode, long offset, long length) throws FsException {
    place.asked(
        () -> {
          calls.allocate(descriptor, mode, offset, length);
          return descriptor;
        });
  }

  /** Removes the bytes of a failed change. */
  public void cutOff(long size) {
    if (descriptor >= 0) {
      try {
        calls.truncate(descriptor, size);
      } catch (FsException e) {
        log.debug("inode {} may be too long: {}", id.inode(), e.getMessage());
      }
    }
  }

  @Override
  public void setTimes(Instant accessTime, Instant modificationTime) throws FsException {
    if (descriptor >= 0) {
      calls.setTimes(descriptor, accessTime, modificationTime);
    }
  }

  /** Fills it with the first bytes of other data. */
  public void fill(DataCopy.Source from, long size, DataCopy.Before before) throws FsException {
    if (!(from instanceof LocalData other) || other.place != place || !isClone(other, size)) {
      DataCopy.copy(from, this::write, 0, size, before);
      truncate(size);
    }
  }

  private boolean isClone(LocalData other, long size) {
    try {
      calls.cloneFile(other.descriptor, descriptor);
      boolean hasAll = size() >= size;
      calls.truncate(descriptor, size);
      return hasAll;
    } catch (FsException e) {
      return false;
    }
  }

  /** Copies a range to an open file, overwriting its other content with holes. */
  void copy(int to, long from, long end, boolean isOver, DataCopy.Before before)
      throws FsException {
    if (isOver) {
      DataCopy.copyOver(calls, descriptor, to, end, before);
    } else {
      DataCopy.copy(calls, descriptor, to, from, end, before);
    }
  }

  public void copyTo(int to, long from, long end) throws FsException {
    copy(to, from, end, false, bytes -> {});
  }

  @Override
  public boolean mayBeSynced() {
    return mayBeSynced;
  }

  /** Syncs it and its name. The place may refuse. */
  public void sync() throws FsException {
    if (descriptor >= 0) {
      mayBeSynced = true;
      place.asked(
          () -> {
            calls.sync(descriptor, false);
            if (!isNameSynced) {
              place.syncName(id);
              isNameSynced = true;
            }
            return descriptor;
          });
    }
  }

  @Override
  public void sync(Frozen empty) throws FsException {
    sync();
  }

  // ---- its room

  /** The estimated disk usage after a write, in blocks of 512 bytes. */
  public long blocksAfter(int length) {
    return 8 * ((countedBytes + length + 4095) / 4096);
  }

  /**
   * Estimates the disk usage of a write, and measures it after many bytes.
   *
   * @return as {@link #recount}, if it was measured; else -1
   */
  public long wrote(long more) throws FsException {
    uncountedBytes += more;
    place.charge(more);
    if (uncountedBytes < RECOUNT_BYTES) {
      return -1;
    }
    place.grew(descriptor);
    return recount();
  }

  /**
   * Measures its disk usage.
   *
   * @return in blocks of 512 bytes; -1 if it is not open
   */
  public long recount() throws FsException {
    if (descriptor < 0) {
      return -1;
    }
    long blocks = status().blocks();
    place.charge(blocks * BLOCK_BYTES - countedBytes - uncountedBytes);
    countedBytes = blocks * BLOCK_BYTES;
    uncountedBytes = 0;
    return blocks;
  }

  private void recountQuietly() {
    try {
      if (!place.isElsewhere()) {
        recount();
      }
    } catch (FsException e) {
      log.debug("counting a data file: {}", e.getMessage());
    }
  }
}
