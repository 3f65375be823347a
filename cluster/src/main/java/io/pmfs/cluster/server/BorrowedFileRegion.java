package io.pmfs.cluster.server;

import io.netty.channel.FileRegion;
import io.netty.util.AbstractReferenceCounted;
import io.pmfs.memory.ReadResult;
import java.io.EOFException;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.WritableByteChannel;
import org.jspecify.annotations.Nullable;

/** A range of a file for sendfile(2). It does not close the file, unlike Netty's own class. */
final class BorrowedFileRegion extends AbstractReferenceCounted implements FileRegion {
  private final FileChannel file;
  private final long position;
  private final long count;
  private long transferred;
  private volatile @Nullable IOException failure;

  BorrowedFileRegion(ReadResult.FileRange range) {
    this.file = range.file();
    this.position = range.position();
    this.count = range.size();
  }

  /** Why the file could not be read; null if it could. */
  @Nullable IOException failure() {
    return failure;
  }

  @Override
  public long transferTo(WritableByteChannel target, long from) throws IOException {
    long sent = file.transferTo(position + from, count - from, target);
    if (sent > 0) {
      transferred += sent;
    } else if (count > from && file.size() < position + count) {
      // Otherwise Netty would ask for the missing bytes forever.
      failure = new EOFException("the file ends at byte " + file.size());
      throw new EOFException("the file ends at byte " + file.size());
    }
    return sent;
  }

  @Override
  public long position() {
    return position;
  }

  @Override
  public long transferred() {
    return transferred;
  }

  @Override
  @Deprecated
  public long transfered() {
    return transferred;
  }

  @Override
  public long count() {
    return count;
  }

  @Override
  protected void deallocate() {}

  @Override
  public FileRegion retain() {
    super.retain();
    return this;
  }

  @Override
  public FileRegion retain(int increment) {
    super.retain(increment);
    return this;
  }

  @Override
  public FileRegion touch() {
    return this;
  }

  @Override
  public FileRegion touch(Object hint) {
    return this;
  }
}
