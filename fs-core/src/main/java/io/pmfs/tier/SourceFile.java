package io.pmfs.tier;

import java.nio.ByteBuffer;

/** An open regular file of the backing store. Safe for use by many threads until closed. */
public interface SourceFile extends AutoCloseable {
  /**
   * Reads into the destination until it is full or the file ends.
   *
   * @param destination a direct buffer
   * @return bytes read; less than asked for only at the end of the file
   */
  int read(long offset, ByteBuffer destination) throws FsException;

  /** What the open file is now. */
  SourceStatus status() throws FsException;

  @Override
  void close();
}
