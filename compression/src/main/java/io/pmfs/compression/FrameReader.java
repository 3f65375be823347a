package io.pmfs.compression;

import java.nio.ByteBuffer;

/**
 * Decompresses frames of files in the zstd seekable format that any program wrote. Whether damage
 * is detected depends on that program, because the format's checksums are optional. Thread-safe, if
 * each thread has its own buffers.
 */
public final class FrameReader implements AutoCloseable {
  private final ZstdDecompressor decompressor = new ZstdDecompressor(null);

  /**
   * Decompresses one frame; {@code source} contains exactly its bytes. Buffers are direct; their
   * positions move past the bytes used, or stay if this throws.
   *
   * @throws CodecException if {@code source} is not a frame, or its content size differs from the
   *     table
   */
  public void decompress(SeekTable table, int frame, ByteBuffer source, ByteBuffer target)
      throws CodecException {
    Buffers.check(source, target);
    int before = target.position();
    int start = source.position();
    long size = table.contentSize(frame);
    if (source.remaining() != table.compressedSize(frame) || size > target.remaining()) {
      throw new IllegalArgumentException(
          "frame %d has %d bytes of content in %d compressed bytes"
              .formatted(frame, size, table.compressedSize(frame)));
    }
    int written = decompressor.decompress(source, target);
    if (written != size) {
      source.position(start);
      target.position(before);
      throw new CodecException(
          "frame %d has %d bytes of content instead of %d".formatted(frame, written, size), null);
    }
  }

  /** Frees native memory; later calls fail with an IllegalStateException. Idempotent. */
  @Override
  public void close() {
    decompressor.close();
  }
}
