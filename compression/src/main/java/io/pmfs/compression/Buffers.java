package io.pmfs.compression;

import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;

/** Checks the buffers of a codec's call. */
final class Buffers {
  private Buffers() {}

  static void check(ByteBuffer source, ByteBuffer target) {
    if (!source.isDirect() || !target.isDirect()) {
      throw new IllegalArgumentException("codecs take direct buffers");
    }
    if (target.isReadOnly()) {
      throw new ReadOnlyBufferException();
    }
  }
}
