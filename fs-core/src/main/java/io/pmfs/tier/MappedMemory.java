package io.pmfs.tier;

import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * Memory that outlives the process, mapped as a whole: a device or file of persistent memory, or a
 * substitute. Exclusive while it is open. Thread-safe until closed.
 */
public interface MappedMemory extends AutoCloseable {
  /** The size in bytes. */
  long size();

  /** Whether it is persistent memory, and if not, why. */
  DaxVerdict dax();

  /**
   * A little-endian view of a range; must not be used once this is closed.
   *
   * @throws IndexOutOfBoundsException if the range is not within the memory
   */
  ByteBuffer slice(long offset, int size);

  /**
   * Makes the bytes written to a range survive a power failure, if this is persistent memory. Bytes
   * persisted later survive only if these do. Files in the page cache are left to the kernel: they
   * survive the process, but not a power failure.
   */
  void persist(long offset, long size);

  /**
   * Like {@link #persist}, and also writes files in the page cache to disk, which takes
   * milliseconds.
   *
   * @throws IOException if writing failed
   */
  void sync(long offset, long size) throws IOException;

  /**
   * Checks that a range can be read, or written, as far as the system can tell.
   *
   * @throws IOException if it cannot: it is defective, or its file was truncated
   */
  default void check(long offset, long size, boolean write) throws IOException {}

  /**
   * Allocates storage for every byte before anything is written; existing content stays.
   *
   * @throws PoolException if there is no room
   */
  default void fill() throws IOException {}

  /** Unmaps the memory. Using a view afterwards kills the process. */
  @Override
  void close();
}
