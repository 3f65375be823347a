package io.pmfs.tier;

import io.pmfs.metadata.FileName;
import org.jspecify.annotations.Nullable;

/**
 * Regular files that lie one behind the other in a large file of the source. Who passes over them
 * in order reads that file once, front to back, in large requests. Used by one thread.
 */
public interface SourceSequence extends AutoCloseable {
  /** The path of the next file; null after the last. */
  @Nullable FileName next() throws FsException;

  /**
   * Opens the file that {@link #next} named last. To be read before the next is named; what it says
   * of itself is what {@link BackingStore#open} would say.
   */
  SourceFile open() throws FsException;

  @Override
  void close();
}
