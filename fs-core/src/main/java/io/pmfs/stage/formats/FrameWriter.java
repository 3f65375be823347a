package io.pmfs.stage.formats;

import io.pmfs.compression.SeekTable;
import io.pmfs.compression.ZstdCodec;
import io.pmfs.memory.BufferPool;
import io.pmfs.metadata.Checksums;
import io.pmfs.tier.CopyWriter;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Compresses blocks and appends their frames to a file, in any order. Several threads may write
 * different blocks at once; reading a block and ending the file require that the blocks were
 * written.
 */
public final class FrameWriter implements Frames {
  /**
   * The largest size of a compressed block: frames a little larger than their content, and their
   * table.
   */
  public static final int MAX_BYTES = Blocks.SIZE + Frames.PER_BLOCK * 2048;

  private final CopyWriter file;
  private final ZstdCodec codec;
  private final long contentSize;
  private final boolean bundled;
  private final BufferPool memory;
  private final long[] offsets;
  private final int[] sizes;
  private final int[] checksums;
  private final AtomicLong end = new AtomicLong();

  /**
   * A writer for content of the given size.
   *
   * @param bundled whether the whole content, one block, goes into a bundle
   * @param memory lends buffers for compressing
   */
  FrameWriter(
      CopyWriter file, ZstdCodec codec, long contentSize, boolean bundled, BufferPool memory) {
    this.bundled = bundled;
    this.memory = memory;
    this.file = file;
    this.codec = codec;
    this.contentSize = contentSize;
    int count = Frames.count(contentSize, SIZE);
    this.offsets = new long[count];
    this.sizes = new int[count];
    this.checksums = new int[count];
  }

  /** Compresses a whole block in the calling thread, and writes it. */
  void write(int block, ByteBuffer content) throws IOException {
    try (BufferPool.Loan loan = memory.take(MAX_BYTES)) {
      write(block, content, loan.buffer());
    }
  }

  private void write(int block, ByteBuffer content, ByteBuffer compressed) throws IOException {
    int first = block * PER_BLOCK;
    int limit = content.limit();
    int count = Frames.count(content.remaining(), SIZE);
    for (int frame = first; frame < first + count; frame++) {
      content.limit(Math.min(content.position() + SIZE, limit));
      checksums[frame] = Blocks.checksum(content);
      sizes[frame] = codec.compress(content, compressed);
      content.limit(limit);
    }
    long offset = end.getAndAdd(compressed.flip().remaining());
    for (int frame = first; frame < first + count; frame++) {
      offsets[frame] =
          offset + (frame == first ? 0 : offsets[frame - 1] + sizes[frame - 1] - offset);
    }
    if (bundled) {
      compressed.limit(compressed.capacity()).position((int) end.get());
      file.append(compressed.put(table().encode()).flip());
    } else {
      file.write(offset, compressed);
    }
  }

  @Override
  public void readFrame(int frame, ByteBuffer destination) throws IOException {
    file.read(offsets[frame], sizes[frame]).copyTo(destination);
  }

  @Override
  public int checksum(int frame) {
    return checksums[frame];
  }

  ZstdCodec codec() {
    return codec;
  }

  Checksums checksums() {
    return Checksums.of(checksums);
  }

  /** The size of the whole file, once all blocks are written. */
  long storedSize() {
    return end.get() + SeekTable.encodedSize(sizes.length);
  }

  /** Whether the frames are in the order of the content, as the format requires. */
  boolean isInOrder() {
    for (int frame = 1; frame < offsets.length; frame++) {
      if (offsets[frame] < offsets[frame - 1]) {
        return false;
      }
    }
    return true;
  }

  /** Copies the frames to another file, in order. */
  void copyInOrder(CopyWriter target) throws IOException {
    try (BufferPool.Loan loan = memory.take(MAX_BYTES)) {
      copyInOrder(target, loan.buffer());
    }
  }

  private void copyInOrder(CopyWriter target, ByteBuffer buffer) throws IOException {
    long offset = 0;
    for (int frame = 0; frame < sizes.length; ) {
      buffer.clear();
      do {
        readFrame(frame, buffer);
        frame++;
      } while (frame < sizes.length && buffer.remaining() >= sizes[frame]);
      target.write(offset, buffer.flip());
      offset += buffer.position();
    }
  }

  /** Completes a file, this one or its ordered copy, with the table. */
  void writeTable(CopyWriter target) throws IOException {
    if (!bundled) {
      target.write(end.get(), table().encode());
    }
  }

  private SeekTable table() {
    int[] contentSizes = new int[sizes.length];
    for (int frame = 0; frame < sizes.length; frame++) {
      contentSizes[frame] = (int) Math.min(SIZE, contentSize - (long) frame * SIZE);
    }
    return SeekTable.of(sizes, contentSizes);
  }
}
