package io.pmfs.compression;

import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;

/**
 * Compresses and decompresses bytes. Safe for use by many threads, each with its own buffers.
 *
 * <p>Buffers are direct and do not overlap. A call takes all bytes of {@code source} between its
 * position and its limit, writes to {@code target} from its position on, and moves both positions
 * past the bytes that it used. If it throws, no position has moved, and the bytes of {@code target}
 * between position and limit are undefined.
 */
public interface Codec extends AutoCloseable {
  /** The number in records of copies; never reused for another codec. */
  int number();

  /** The name in a configuration. */
  String name();

  /**
   * The maximum size of the result of compressing {@code size} bytes.
   *
   * @throws IllegalArgumentException if that is more than a buffer can hold
   */
  int maxCompressedSize(int size);

  /**
   * Compresses; returns the number of bytes written.
   *
   * @throws BufferOverflowException if the result does not fit; {@link #maxCompressedSize} bytes
   *     always suffice
   */
  int compress(ByteBuffer source, ByteBuffer target);

  /**
   * Decompresses the whole result of one {@link #compress}; returns the number of bytes written.
   * Damaged bytes give an exception or, if the damage does not affect the content, the content; a
   * codec without redundancy ({@link RawCodec}) cannot detect damage.
   *
   * @throws CodecException if the source is not such a result, or its content does not fit
   */
  int decompress(ByteBuffer source, ByteBuffer target) throws CodecException;

  /** Frees native memory; later calls fail with an IllegalStateException. Idempotent. */
  @Override
  default void close() {}
}
