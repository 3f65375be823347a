package io.pmfs.stage.formats;

import io.pmfs.memory.ReadSink;
import java.io.IOException;

/** An open copy that serves only bytes that match their checksums. Safe for use by many threads. */
public interface OpenCopy extends AutoCloseable {
  /**
   * Passes a range of the content, which must lie within it, to the sink.
   *
   * @throws MismatchException if the copy does not match its record
   * @throws java.io.EOFException if the copy was truncated
   * @throws IOException if the copy cannot be read
   */
  void copyTo(long offset, int size, ReadSink sink) throws IOException;

  @Override
  void close();
}
