package io.pmfs.compression;

import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;

/** Checks that every codec makes on its buffers. */
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
