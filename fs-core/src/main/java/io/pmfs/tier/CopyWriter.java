package io.pmfs.tier;

import io.pmfs.memory.ReadResult;
import io.pmfs.metadata.Extent;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * Writes a copy, with room reserved for it. The copy is not visible in its tier until {@link
 * #commit}. Several threads may write and read different ranges at once; but not during commit and
 * close.
 */
public interface CopyWriter {
  /** The tier of the copy. */
  Tier tier();

  /**
   * Announces that the copy will be a file of this many plain bytes, before any is written: a tier
   * that maps its files then allocates the file in pieces suited to mapping. Fails like {@link
   * #write}.
   */
  default void allocate(long sizeBytes) throws IOException {}

  /**
   * Writes all remaining bytes at an offset. An IOException means that the tier is full or has
   * failed; close the writer then.
   */
  void write(long offset, ByteBuffer source) throws IOException;

  /**
   * Appends a whole copy to a bundle, where it uses exactly its size; no other write may precede or
   * follow. Fails like {@link #write}.
   */
  void append(ByteBuffer source) throws IOException;

  /** Reads a range that was written before. */
  ReadResult read(long offset, int size) throws IOException;

  /** Releases the room reserved beyond this size, before commit. */
  void shrink(long sizeBytes);

  /**
   * Makes the copy visible, replacing an older one that was a file. It can still be read until
   * {@link #close}.
   *
   * @return its place in a bundle; null if it is a file
   */
  @Nullable Extent commit() throws IOException;

  /** Drops the copy if it was not committed, and releases all resources. Idempotent. */
  void close();
}
