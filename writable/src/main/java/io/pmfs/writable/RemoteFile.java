package io.pmfs.writable;

import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/** A data file that another node keeps. Safe for use by many threads. */
public final class RemoteFile {
  private final NodeData node;
  private final String name;
  private final NodeData.Id id;

  /** What it was when it was frozen last, if it is small. */
  private volatile @Nullable ByteBuffer content;

  /** Whether the file may have been synced: at any time before this process, or by it. */
  private volatile boolean mayBeSynced = true;

  /**
   * A file that may be there.
   *
   * @param name of the node, for messages
   */
  public RemoteFile(NodeData node, String name, long number, long generation) {
    this.node = node;
    this.name = name;
    this.id = new NodeData.Id(number, generation);
  }

  /** The node has answered ENOENT although the file is needed: only the user knows why. */
  public FsException missing(FsException answer) {
    return new FsException(
        Errno.EIO,
        name + " does not have what was written there; mount its disk, or remove the file",
        new IOException(answer));
  }

  /** The file has just been made. */
  public void begin() {
    mayBeSynced = false;
  }

  public boolean mayBeSynced() {
    return mayBeSynced;
  }

  public NodeData.Frozen freeze(boolean sync) throws FsException {
    mayBeSynced |= sync;
    NodeData.Frozen frozen = node.freeze(id, sync);
    content = frozen.content();
    return frozen;
  }

  /** Reads into the buffer until it is full or the file ends; returns how many bytes. */
  public int read(ByteBuffer destination, long offset) throws FsException {
    int count = 0;
    while (destination.hasRemaining()) {
      int wanted = Math.min(destination.remaining(), CopyBuffers.BYTES);
      byte[] bytes = node.read(id, offset + count, wanted);
      if (bytes.length > wanted) {
        throw new FsException(Errno.EIO, "more bytes than were asked for");
      }
      destination.put(bytes);
      count += bytes.length;
      if (bytes.length < wanted) {
        break;
      }
    }
    return count;
  }

  public void setTimes(Instant accessTime, Instant modificationTime) throws FsException {
    node.setTimes(id, accessTime, modificationTime);
  }

  /** Lets the node copy a range to the source. */
  public void copy(NodeData.Target target, long from, long end) throws FsException {
    node.copy(id, target, from, end);
  }

  /**
   * Copies a range.
   *
   * @return where it ends: before {@code end} if the file is shorter
   */
  public long copyTo(DataCopy.Target to, long from, long end, DataCopy.Before before)
      throws FsException {
    ByteBuffer known = content;
    ByteBuffer buffer = CopyBuffers.take();
    try {
      long at = from;
      while (at < end) {
        buffer.clear().limit((int) Math.min(buffer.capacity(), end - at));
        int count = known == null ? read(buffer, at) : take(known, buffer, at);
        if (count == 0) {
          break;
        }
        buffer.flip();
        before.writing(count);
        to.write(buffer, at);
        at += count;
      }
      return at;
    } finally {
      CopyBuffers.give(buffer);
    }
  }

  private static int take(ByteBuffer bytes, ByteBuffer destination, long offset) {
    int from = (int) Math.min(offset, bytes.limit());
    int count = Math.min(destination.remaining(), bytes.limit() - from);
    destination.put(bytes.duplicate().position(from).limit(from + count));
    return count;
  }
}
