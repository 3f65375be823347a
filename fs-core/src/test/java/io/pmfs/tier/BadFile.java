package io.pmfs.tier;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.MappedByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.WritableByteChannel;
import org.jspecify.annotations.Nullable;

/** An open file that is empty, or whose disk fails. */
final class BadFile extends FileChannel {
  private final @Nullable IOException failure;

  /** Without a failure the file is empty. */
  BadFile(@Nullable IOException failure) {
    this.failure = failure;
  }

  @Override
  public int read(ByteBuffer destination, long position) throws IOException {
    if (failure != null) {
      throw failure;
    }
    return -1;
  }

  @Override
  protected void implCloseChannel() {}

  private static UnsupportedOperationException unused() {
    return new UnsupportedOperationException("not needed here");
  }

  @Override
  public int read(ByteBuffer destination) {
    throw unused();
  }

  @Override
  public long read(ByteBuffer[] destinations, int offset, int length) {
    throw unused();
  }

  @Override
  public int write(ByteBuffer source) {
    throw unused();
  }

  @Override
  public long write(ByteBuffer[] sources, int offset, int length) {
    throw unused();
  }

  @Override
  public long position() {
    throw unused();
  }

  @Override
  public FileChannel position(long newPosition) {
    throw unused();
  }

  @Override
  public long size() {
    throw unused();
  }

  @Override
  public FileChannel truncate(long size) {
    throw unused();
  }

  @Override
  public void force(boolean metaData) {
    throw unused();
  }

  @Override
  public long transferTo(long position, long count, WritableByteChannel target) {
    throw unused();
  }

  @Override
  public long transferFrom(ReadableByteChannel source, long position, long count) {
    throw unused();
  }

  @Override
  public int write(ByteBuffer source, long position) {
    throw unused();
  }

  @Override
  public MappedByteBuffer map(MapMode mode, long position, long size) {
    throw unused();
  }

  @Override
  public FileLock lock(long position, long size, boolean shared) {
    throw unused();
  }

  @Override
  public @Nullable FileLock tryLock(long position, long size, boolean shared) {
    throw unused();
  }
}
