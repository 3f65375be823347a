package io.pmfs.tier;

import io.pmfs.memory.ReadResult;

/** An open copy. Safe for use by many threads until closed. */
public interface CopyReader extends AutoCloseable {
  /** The size of the content in bytes. */
  long size();

  /** A range, which must lie within the content; nothing is read yet. */
  ReadResult read(long offset, int size);

  @Override
  void close();
}
