package io.pmfs.stage;

import io.pmfs.tier.ReadSink;
import java.io.IOException;

/** An open copy that serves only bytes that match their checksums. Safe for use by many threads. */
interface OpenCopy extends AutoCloseable {
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
