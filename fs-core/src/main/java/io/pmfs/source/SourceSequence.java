package io.pmfs.source;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.FsException;
import org.jspecify.annotations.Nullable;

/**
 * Regular files stored one after the other in a large file of the source. Iterating reads that file
 * once, from front to back, in large requests. Used by one thread.
 */
public interface SourceSequence extends AutoCloseable {
  /** The path of the next file; null after the last. */
  @Nullable FileName next() throws FsException;

  /**
   * Opens the file last returned by {@link #next}. It must be read before the next call of {@link
   * #next}; its status is the same as from {@link BackingStore#open}.
   */
  SourceFile open() throws FsException;

  @Override
  void close();
}
