package io.pmfs.tier;

import io.pmfs.metadata.Extent;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/**
 * A copy in the making, with room reserved for it. Not visible in its tier until {@link #commit}.
 * Different ranges may be written and read by different threads at once; commit and abort exclude
 * everything else.
 */
public interface CopyWriter {
  /** The tier that it will be in. */
  Tier tier();

  /**
   * Says that the copy will be a file of so many plain bytes, before any is written: where files
   * are mapped, it gets its room in pieces that are good for that. Failures as of {@link #write}.
   */
  default void allocate(long sizeBytes) throws IOException {}

  /**
   * Writes all remaining bytes at an offset. An IOException says that the tier is full or has
   * failed; abort the copy then.
   */
  void write(long offset, ByteBuffer source) throws IOException;

  /**
   * Writes a whole copy to a bundle with others, where it takes no more than its size; nothing else
   * is written before or after. Failures as of {@link #write}.
   */
  void append(ByteBuffer source) throws IOException;

  /** A range that was written before. */
  ReadResult read(long offset, int size) throws IOException;

  /** Gives back what was reserved for more than so many bytes, before it is committed. */
  void shrink(long sizeBytes);

  /**
   * Makes the copy visible, replacing an older one that was a file. Reading goes on until {@link
   * #close}.
   *
   * @return where it is in a bundle; null if it is a file
   */
  @Nullable Extent commit() throws IOException;

  /** Drops the copy if it was not committed, and releases everything. Idempotent. */
  void close();
}
