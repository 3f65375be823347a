package io.pmfs.source;

/**
 * An open file that holds the whole content of a file of the source, for a kernel that reads it
 * without pmfs: the file itself, or one that another process has and keeps until this is closed.
 */
public interface LentFile extends AutoCloseable {
  /** Its file descriptor. */
  int descriptor();

  /** Whether it is a copy, so that reading it asks the source for nothing. */
  default boolean isCopy() {
    return false;
  }

  /** Closes only the descriptor, which is of no use once the kernel has the file. */
  void closeDescriptor();

  @Override
  void close();
}
