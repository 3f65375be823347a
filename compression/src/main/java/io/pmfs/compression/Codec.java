package io.pmfs.compression;

import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;

/**
 * Bytes in, bytes out, and the way back. Safe for use by many threads, each with buffers of its
 * own.
 *
 * <p>Buffers are direct and do not overlap. A call takes all that {@code source} has between its
 * position and its limit, writes to {@code target} from its position on, and moves both positions
 * past what it used. If it throws, no position has moved, and what {@code target} has between
 * position and limit is undefined.
 */
public interface Codec extends AutoCloseable {
  /** What copies record; never reused for another codec. */
  int number();

  /** What users write in a configuration. */
  String name();

  /**
   * The largest result that compressing {@code size} bytes can have. An IllegalArgumentException if
   * that is above what a buffer can hold.
   */
  int maxCompressedSize(int size);

  /**
   * Compresses; returns the bytes written.
   *
   * @throws BufferOverflowException if the result does not fit; {@link #maxCompressedSize} always
   *     does
   */
  int compress(ByteBuffer source, ByteBuffer target);

  /**
   * Decompresses the whole result of one {@link #compress}; returns the bytes written. Damage gives
   * an exception or, where it does not touch the content, the content; a codec without redundancy
   * ({@link RawCodec}) cannot see it.
   *
   * @throws CodecException if the source is not such a result, or its content does not fit
   */
  int decompress(ByteBuffer source, ByteBuffer target) throws CodecException;

  /** Frees native memory; calls after it fail with an IllegalStateException. Idempotent. */
  @Override
  default void close() {}
}
