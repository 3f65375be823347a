package io.pmfs.tier;

import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import java.io.IOException;

/** An open copy as its tier stores it, not verified. */
public interface CopyReader extends OpenCopy {
  /** The size of the content in bytes. */
  long size();

  /** A range, which must lie within the content; read when the result is used. */
  ReadResult read(long offset, int size);

  @Override
  default void copyTo(long offset, int size, ReadSink sink) throws IOException {
    sink.accept(read(offset, size));
  }
}
