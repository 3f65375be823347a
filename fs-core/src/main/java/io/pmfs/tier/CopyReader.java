package io.pmfs.tier;

/** An open copy. Safe for use by many threads until closed. */
public interface CopyReader extends AutoCloseable {
  /** Bytes of content. */
  long size();

  /** The range, which must lie within the content; nothing is read yet. */
  ReadResult read(long offset, int size);

  @Override
  void close();
}
