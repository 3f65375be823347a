package io.pmfs.tier;

import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * Memory that outlives the process, mapped as a whole: a device or file of persistent memory, or
 * something that stands in for it. Nobody else has it while it is open. Safe for use by many
 * threads until it is closed.
 */
public interface MappedMemory extends AutoCloseable {
  /** Bytes. */
  long size();

  /** Whether it is persistent memory, and why not. */
  TierStatus.Dax dax();

  /**
   * A view of a range, little-endian; not to be used any more once this is closed.
   *
   * @throws IndexOutOfBoundsException if it is not within the memory
   */
  ByteBuffer slice(long offset, int size);

  /**
   * Returns when what was written to a range survives the end of the machine's power, if it is
   * persistent memory; what is persisted later survives only if this does. Files in the page cache
   * are left to the kernel: they survive the end of the process alone.
   */
  void persist(long offset, long size);

  /**
   * The same, and files in the page cache are written to their disk, which takes milliseconds.
   *
   * @throws IOException if they could not be
   */
  void sync(long offset, long size) throws IOException;

  /**
   * Returns if a range can be read, or else written, as far as the system can tell.
   *
   * @throws IOException if it cannot: it is defective, or its file was cut short
   */
  default void check(long offset, long size, boolean write) throws IOException {}

  /**
   * Has every byte have its place, before anything is written; what is in it stays.
   *
   * @throws PoolException if there is no room for that
   */
  default void fill() throws IOException {}

  /** Unmaps it. Whoever uses a view then ends the process. */
  @Override
  void close();
}
