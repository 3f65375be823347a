package io.pmfs.compression;

import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;

/** Stores the bytes unchanged: number 0. */
public final class RawCodec implements Codec {
  /** The number in records of copies. */
  public static final int NUMBER = 0;

  @Override
  public int number() {
    return NUMBER;
  }

  @Override
  public String name() {
    return "raw";
  }

  @Override
  public int maxCompressedSize(int size) {
    if (size < 0) {
      throw new IllegalArgumentException("size " + size);
    }
    return size;
  }

  @Override
  public int compress(ByteBuffer source, ByteBuffer target) {
    Buffers.check(source, target);
    if (source.remaining() > target.remaining()) {
      throw new BufferOverflowException();
    }
    return copy(source, target);
  }

  @Override
  public int decompress(ByteBuffer source, ByteBuffer target) throws CodecException {
    Buffers.check(source, target);
    if (source.remaining() > target.remaining()) {
      throw new CodecException(
          "%d raw bytes do not fit in %d".formatted(source.remaining(), target.remaining()), null);
    }
    return copy(source, target);
  }

  private static int copy(ByteBuffer source, ByteBuffer target) {
    int size = source.remaining();
    target.put(source);
    return size;
  }
}
