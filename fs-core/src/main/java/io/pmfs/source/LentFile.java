package io.pmfs.source;

/**
 * An open file that holds the whole content of a file of the source, lent by another process to a
 * kernel that reads it without pmfs. The other process keeps it until it is closed.
 */
public interface LentFile extends AutoCloseable {
  /** The number by which the operating system knows it. */
  int descriptor();

  /** Closes only the descriptor, which is of no use once the kernel has the file. */
  void closeDescriptor();

  @Override
  void close();
}
