package io.pmfs.shards;

import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceStatus;
import java.nio.ByteBuffer;

/** Bytes as an open file that counts reads. */
final class MemoryFile implements SourceFile {
  private final byte[] bytes;
  private int reads;
  private long bytesRead;

  MemoryFile(byte[] bytes) {
    this.bytes = bytes;
  }

  int reads() {
    return reads;
  }

  long bytesRead() {
    return bytesRead;
  }

  @Override
  public int read(long offset, ByteBuffer destination) {
    int count = (int) Math.max(0, Math.min(destination.remaining(), bytes.length - offset));
    if (count > 0) {
      destination.put(bytes, (int) offset, count);
    }
    reads++;
    bytesRead += count;
    return count;
  }

  @Override
  public long seekData(long offset) {
    return offset;
  }

  @Override
  public long seekHole(long offset) {
    return bytes.length;
  }

  @Override
  public SourceStatus status() {
    throw new UnsupportedOperationException();
  }

  @Override
  public void close() {}
}
