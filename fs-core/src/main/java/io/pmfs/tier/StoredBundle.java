package io.pmfs.tier;

import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * Where the bytes of a bundle are: a file, or an allocation in a pool. Safe for use by many threads
 * until closed.
 */
interface StoredBundle {
  /** From 1; none had it before. */
  long number();

  /** Bytes in it when it was found, which may be more than were ever wanted; 0 of a new one. */
  long size();

  /** How many bytes it could hold. */
  long limit();

  /** What it takes of the tier's room with so many bytes in it. */
  long charge(long sizeBytes);

  /** How many bytes of it are where the next session will look for it; -1 if it is gone. */
  long found() throws IOException;

  /** Writes all remaining bytes at an offset, to stay. */
  void write(long offset, ByteBuffer source) throws IOException;

  /**
   * What ranges are read by until it is closed.
   *
   * @throws java.nio.file.NoSuchFileException if somebody took it away
   */
  Ranges open() throws IOException;

  /** Reads ranges; nothing is read before the result is used. */
  interface Ranges {
    ReadResult range(long offset, int size);
  }

  /** Removes it. Who reads goes on until it is closed. */
  void delete();

  /** Called once, at the end, when nobody reads or writes. */
  void close();
}
