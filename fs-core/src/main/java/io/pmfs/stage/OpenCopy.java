package io.pmfs.stage;

import io.pmfs.tier.ReadSink;
import java.io.IOException;

/**
 * An open copy that serves nothing it has not compared with its checksums. Safe for use by many
 * threads.
 */
interface OpenCopy extends AutoCloseable {
  /**
   * Passes a range of the content, which must lie within it, to the sink.
   *
   * @throws MismatchException if the copy is not what was recorded
   * @throws java.io.EOFException if it is shorter than it was
   * @throws IOException if it cannot be read
   */
  void read(long offset, int size, ReadSink sink) throws IOException;

  @Override
  void close();
}
