package io.pmfs.compression;

import com.github.luben.zstd.Zstd;
import com.github.luben.zstd.ZstdCompressCtx;
import com.github.luben.zstd.ZstdDictCompress;
import com.github.luben.zstd.ZstdException;
import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/**
 * Compresses bytes to one Zstandard frame (RFC 8878) with a content checksum, and decompresses it.
 * Any zstd program can read the frame. Thread-safe, if each thread has its own buffers.
 *
 * <p>Buffers are direct and do not overlap. A call takes all bytes of {@code source} between its
 * position and its limit, writes to {@code target} from its position on, and moves both positions
 * past the bytes that it used. If it throws, no position has moved, and the bytes of {@code target}
 * between position and limit are undefined.
 *
 * <p>Keeps one idle native context per processor; additional concurrent calls create and free their
 * own.
 */
public final class ZstdCodec implements AutoCloseable {
  /** Identifies this codec in records of copies. */
  public static final int NUMBER = 1;

  /** Identifies this codec with a dictionary in records of copies. */
  public static final int WITH_DICTIONARY = 2;

  private static final int MAGIC = 0xfd2fb528;
  private static final int HEADER_BYTES = 5;
  private static final int CHECKSUM_FLAG = 4;
  // ZSTD_error_dstSize_tooSmall, zstd_errors.h
  private static final long TARGET_TOO_SMALL = 70;

  private final boolean hasDictionary;
  private final ContextPool<ZstdCompressCtx> compressors;
  private final ZstdDecompressor decompressor;

  /**
   * Without a dictionary.
   *
   * @param level as in the zstd program: 1 is fast, 19 is small
   */
  public ZstdCodec(int level) {
    this(level, null);
  }

  /** With a dictionary, which is then also needed to decompress. */
  public ZstdCodec(int level, @Nullable Dictionary dictionary) {
    if (level < Zstd.minCompressionLevel() || level > Zstd.maxCompressionLevel()) {
      throw new IllegalArgumentException(
          "zstd level %d is not between %d and %d"
              .formatted(level, Zstd.minCompressionLevel(), Zstd.maxCompressionLevel()));
    }
    ZstdDictCompress prepared =
        dictionary == null ? null : new ZstdDictCompress(dictionary.bytes(), level);
    this.hasDictionary = prepared != null;
    compressors =
        new ContextPool<>(
            () -> {
              ZstdCompressCtx context = new ZstdCompressCtx().setLevel(level).setChecksum(true);
              return prepared == null ? context : context.loadDict(prepared);
            },
            prepared);
    decompressor = new ZstdDecompressor(dictionary);
  }

  /** The number in records of copies; never reused for another codec. */
  public int number() {
    return hasDictionary ? WITH_DICTIONARY : NUMBER;
  }

  /**
   * The maximum size of the result of compressing {@code size} bytes.
   *
   * @throws IllegalArgumentException if that is more than a buffer can hold
   */
  public int maxCompressedSize(int size) {
    long bound = size < 0 ? -1 : Zstd.compressBound(size);
    if (bound < 0 || bound > Integer.MAX_VALUE) {
      throw new IllegalArgumentException("size " + size);
    }
    return (int) bound;
  }

  /**
   * Compresses; returns the number of bytes written.
   *
   * @throws BufferOverflowException if the result does not fit; {@link #maxCompressedSize} bytes
   *     always suffice
   */
  public int compress(ByteBuffer source, ByteBuffer target) {
    Buffers.check(source, target);
    ZstdCompressCtx context = compressors.take();
    try {
      int written =
          context.compressDirectByteBuffer(
              target,
              target.position(),
              target.remaining(),
              source,
              source.position(),
              source.remaining());
      source.position(source.limit());
      target.position(target.position() + written);
      return written;
    } catch (ZstdException e) {
      if (e.getErrorCode() == TARGET_TOO_SMALL) {
        throw (BufferOverflowException) new BufferOverflowException().initCause(e);
      }
      throw new IllegalStateException("zstd cannot compress: " + e.getMessage(), e);
    } finally {
      compressors.giveBack(context);
    }
  }

  /**
   * Decompresses the whole result of one {@link #compress}; returns the number of bytes written.
   *
   * @throws CodecException if the source is not such a result, or its content does not fit
   */
  public int decompress(ByteBuffer source, ByteBuffer target) throws CodecException {
    Buffers.check(source, target);
    checkHeader(source);
    return decompressor.decompress(source, target);
  }

  /** The library would also accept empty input, older formats, and frames without a checksum. */
  private static void checkHeader(ByteBuffer source) throws CodecException {
    ByteBuffer header = source.duplicate().order(ByteOrder.LITTLE_ENDIAN);
    if (header.remaining() < HEADER_BYTES
        || header.getInt() != MAGIC
        || (header.get() & CHECKSUM_FLAG) == 0) {
      throw new CodecException("not a zstd frame with a content checksum", null);
    }
  }

  /** Frees native memory; later calls fail with an IllegalStateException. Idempotent. */
  @Override
  public void close() {
    compressors.close();
    decompressor.close();
  }
}
