package io.pmfs.tier;

import io.pmfs.memory.ReadSink;
import java.io.IOException;

/** An open copy of a file's content. Thread-safe until closed. */
public interface OpenCopy extends AutoCloseable {
  /**
   * Passes a range of the content, which must lie within it, to the sink.
   *
   * @throws java.io.EOFException if the copy was truncated
   * @throws IOException if the copy cannot be read, or does not match its record
   */
  void copyTo(long offset, int size, ReadSink sink) throws IOException;

  @Override
  void close();
}
