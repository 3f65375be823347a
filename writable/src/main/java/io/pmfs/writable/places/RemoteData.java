package io.pmfs.writable.places;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.NodeData.Frozen;
import io.pmfs.writable.OutputCalls;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/** A data file that another node keeps. Thread-safe. */
public final class RemoteData implements DataFile {
  private final NodePlace place;
  private final NodeData node;
  private final NodeData.Id id;

  /** The content while the file is frozen, if it is small. */
  private volatile @Nullable ByteBuffer content;

  /** How often the node had stopped when this process let it write; -1 if another process did. */
  private volatile long pauses = -1;

  /** The state that the node has reported; null once it may write again. */
  private volatile @Nullable Frozen reported;

  private volatile boolean mayBeSynced = true;

  RemoteData(NodePlace place, NodeData node, NodeData.Id id) {
    this.place = place;
    this.node = node;
    this.id = id;
  }

  @Override
  public NodeData.Id id() {
    return id;
  }

  @Override
  public DataPlace place() {
    return place;
  }

  @Override
  public boolean isHere() {
    return false;
  }

  @Override
  public boolean isThere() {
    return true;
  }

  /** The error after ENOENT for a file that is needed: only the user can know the cause. */
  public FsException missing(FsException answer) {
    return new FsException(
        Errno.EIO,
        place.name() + " does not have what was written there; mount its disk, or remove the file",
        new IOException(answer));
  }

  /** The file is about to be created. */
  public void begin() {
    mayBeSynced = false;
    resumed(0);
  }

  /** The node continues writing, having stopped this often. */
  public void resumed(long count) {
    pauses = count;
    reported = null;
    content = null;
  }

  /** The node has stopped writing and reports the file's state, valid until it continues. */
  public void paused(NodeData.Paused paused) {
    if (pauses >= 0 && paused.pauses() > pauses) {
      reported = paused.frozen();
    }
  }

  @Override
  public void open() {}

  @Override
  public boolean isReadable(boolean isWriting) {
    return !isWriting;
  }

  private Frozen freeze(boolean sync) throws FsException {
    mayBeSynced |= sync;
    Frozen known = sync ? null : reported;
    reported = null;
    Frozen frozen = known == null ? node.freeze(id, sync) : known;
    content = frozen.content();
    return frozen;
  }

  /** Freezes the file; one that its node has not created yet is empty. */
  private Frozen freeze(boolean sync, Frozen empty) throws FsException {
    try {
      return freeze(sync);
    } catch (FsException e) {
      requireNotMade(e);
      return empty;
    }
  }

  /** Like {@link #freeze(Frozen)}; the node may have lost the file. */
  public Frozen freezeRest(Frozen empty) throws FsException {
    try {
      return freeze(false);
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
      return empty;
    }
  }

  /** Fails unless the node has answered that it does not have the file, which may be empty. */
  private void requireNotMade(FsException answer) throws FsException {
    if (answer.errno() != Errno.ENOENT) {
      throw answer;
    }
    if (place.isPromised(id)) {
      throw missing(answer);
    }
  }

  @Override
  public Frozen freeze(Frozen empty) throws FsException {
    return freeze(false, empty);
  }

  @Override
  public boolean mayBeSynced() {
    return mayBeSynced;
  }

  @Override
  public void sync(Frozen empty) throws FsException {
    freeze(true, empty);
  }

  /** The size; 0 if the file is gone and nothing of it was announced. */
  long size() throws FsException {
    try {
      return freeze(false).size();
    } catch (FsException e) {
      requireNotMade(e);
      return 0;
    }
  }

  /** Reads until the buffer is full or the file ends; returns the number of bytes. */
  @Override
  public int read(ByteBuffer destination, long offset) throws FsException {
    ByteBuffer known = content;
    if (known != null) {
      int from = (int) Math.min(offset, known.limit());
      int size = Math.min(destination.remaining(), known.limit() - from);
      destination.put(known.duplicate().position(from).limit(from + size));
      return size;
    }
    int count = 0;
    while (destination.hasRemaining()) {
      int wanted = Math.min(destination.remaining(), CopyBuffers.BYTES);
      byte[] bytes = node.read(id, offset + count, wanted);
      if (bytes.length > wanted) {
        throw new FsException(Errno.EIO, "more bytes than requested");
      }
      destination.put(bytes);
      count += bytes.length;
      if (bytes.length < wanted) {
        break;
      }
    }
    return count;
  }

  /** The node knows the holes. */
  @Override
  public long seek(long offset, int whence) {
    return whence == OutputCalls.SEEK_HOLE ? Long.MAX_VALUE : offset;
  }

  @Override
  public void setTimes(Instant accessTime, Instant modificationTime) throws FsException {
    reported = null;
    try {
      node.setTimes(id, accessTime, modificationTime);
    } catch (FsException e) {
      requireNotMade(e);
    }
  }

  /** Makes the node copy a range to the source. */
  public void copy(NodeData.Target target, long from, long end) throws FsException {
    node.copy(id, target, from, end);
  }

  @Override
  public void close() {}
}
