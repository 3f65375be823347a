package io.pmfs.source;

/**
 * An open file with the whole content of a file of the source, lent by another process to a kernel
 * that reads it without pmfs. The lender keeps it until it is closed.
 */
public interface LentFile extends AutoCloseable {
  /** Its file descriptor. */
  int descriptor();

  /** Closes only the descriptor, which is not needed once the kernel has the file. */
  void closeDescriptor();

  @Override
  void close();
}
