package io.pmfs.shards;

import io.pmfs.posix.FsException;
import io.pmfs.source.SourceFile;
import java.nio.ByteBuffer;

/**
 * Reads a shard for a scan: headers in order, with contents between them. Reads everything in large
 * requests while contents are small; skips large contents. Used by one thread.
 */
final class HeaderReader {
  /** The largest single read. */
  static final int MAX_BYTES = 1 << 20;

  /** The size of the first read after large content: the next header, and perhaps a few more. */
  private static final int MIN_BYTES = 16 << 10;

  /** For a source with latency, skipping less than this costs more than reading it. */
  private static final int GAP_BYTES = 256 << 10;

  private final SourceFile file;
  private final long size;
  private final ByteBuffer buffer;
  private long start;
  private int nextBytes = MIN_BYTES;

  /**
   * Reads a shard.
   *
   * @param buffer a direct buffer of {@link #MAX_BYTES}
   */
  HeaderReader(SourceFile file, long size, ByteBuffer buffer) {
    this.file = file;
    this.size = size;
    this.buffer = buffer.clear().limit(0);
  }

  long size() {
    return size;
  }

  /**
   * Reads bytes of the shard.
   *
   * @param count at most {@link #MAX_BYTES}
   * @return fewer bytes than requested only at the end of the shard
   */
  byte[] read(long offset, int count) throws FsException {
    int wanted = (int) Math.max(0, Math.min(count, size - offset));
    if (offset < start || offset + wanted > start + buffer.limit()) {
      fill(offset, wanted);
    }
    int from = (int) (offset - start);
    byte[] bytes = new byte[Math.max(0, Math.min(wanted, buffer.limit() - from))];
    buffer.get(from, bytes);
    return bytes;
  }

  private void fill(long offset, int wanted) throws FsException {
    boolean onward = offset >= start && offset - (start + buffer.limit()) <= GAP_BYTES;
    nextBytes = onward ? Math.min(MAX_BYTES, 2 * nextBytes) : MIN_BYTES;
    buffer.clear().limit(Math.max(wanted, nextBytes));
    start = offset;
    int count = file.read(offset, buffer);
    buffer.position(0).limit(count);
  }
}
