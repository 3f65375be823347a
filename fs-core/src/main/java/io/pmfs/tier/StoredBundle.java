package io.pmfs.tier;

import io.pmfs.memory.ReadResult;
import java.io.IOException;
import java.nio.ByteBuffer;

/** The storage of a bundle: a file, or an allocation in a pool. Thread-safe until closed. */
interface StoredBundle {
  /** The bundle's number, from 1; never reused. */
  long number();

  /**
   * The size when the bundle was found, which may be more than was ever wanted; 0 for a new one.
   */
  long size();

  /** Whether another process may append to it. */
  default boolean isShared() {
    return false;
  }

  /**
   * Whether it is stored in that file.
   *
   * @param key its device and inode number
   */
  default boolean isFile(Object key) {
    return false;
  }

  /** The most bytes that it can hold. */
  long limit();

  /** The room in the tier that the bundle uses with this many bytes in it. */
  long charge(long sizeBytes);

  /** How many bytes the next session would find; -1 if the bundle no longer exists. */
  long found() throws IOException;

  /** Writes all remaining bytes at an offset, permanently. */
  void write(long offset, ByteBuffer source) throws IOException;

  /**
   * Opens the bundle for reading ranges until it is closed.
   *
   * @throws java.nio.file.NoSuchFileException if the bundle was removed
   */
  Ranges open() throws IOException;

  /** Reads ranges; nothing is read before the result is used. */
  interface Ranges {
    ReadResult range(long offset, int size);
  }

  /** Removes the bundle. It can still be read until it is closed. */
  void delete();

  /** Called once, when the bundle is no longer read or written. */
  void close();
}
