package io.pmfs.compression;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Writes content as a file in the zstd seekable format: frames of equal size, except the last and
 * those that {@link #endFrame} ends early, followed by the table. Not thread-safe.
 */
public final class SeekableWriter extends OutputStream {
  private final OutputStream out;
  private final ZstdCodec codec;
  private final ByteBuffer frame;
  private final ByteBuffer compressed;
  private final byte[] transfer;
  private int[] compressedSizes = new int[16];
  private int[] contentSizes = new int[16];
  private int frameCount;
  private boolean finished;

  /**
   * Takes over the stream; {@link #close} closes it.
   *
   * @param codec a {@link ZstdCodec}; stays open
   * @param frameBytes bytes of content in a frame
   */
  public SeekableWriter(OutputStream out, ZstdCodec codec, int frameBytes) {
    this.out = out;
    this.codec = codec;
    this.frame = ByteBuffer.allocateDirect(frameBytes);
    this.compressed = ByteBuffer.allocateDirect(codec.maxCompressedSize(frameBytes));
    this.transfer = new byte[compressed.capacity()];
  }

  @Override
  public void write(int value) throws IOException {
    write(new byte[] {(byte) value}, 0, 1);
  }

  @Override
  public void write(byte[] bytes, int offset, int length) throws IOException {
    if (finished) {
      throw new IOException("the table is already written");
    }
    int end = offset + length;
    for (int at = offset; at < end; ) {
      int count = Math.min(end - at, frame.remaining());
      frame.put(bytes, at, count);
      at += count;
      if (!frame.hasRemaining()) {
        endFrame();
      }
    }
  }

  /** Makes the next byte begin a new frame. */
  public void endFrame() throws IOException {
    if (frame.position() == 0) {
      return;
    }
    if (frameCount == SeekTable.MAX_FRAMES) {
      throw new IOException("the content has more than " + frameCount + " frames");
    }
    int contentSize = frame.position();
    int size = codec.compress(frame.flip(), compressed.clear());
    compressed.flip().get(transfer, 0, size);
    out.write(transfer, 0, size);
    frame.clear();
    if (frameCount == compressedSizes.length) {
      compressedSizes = Arrays.copyOf(compressedSizes, 2 * frameCount);
      contentSizes = Arrays.copyOf(contentSizes, 2 * frameCount);
    }
    compressedSizes[frameCount] = size;
    contentSizes[frameCount] = contentSize;
    frameCount++;
  }

  /** Writes the rest of the content and the table, which it returns; the stream stays open. */
  public SeekTable finish() throws IOException {
    if (!finished) {
      endFrame();
      finished = true;
      ByteBuffer table = table().encode();
      byte[] encoded = new byte[table.remaining()];
      table.get(encoded);
      out.write(encoded);
    }
    return table();
  }

  private SeekTable table() {
    return SeekTable.of(
        Arrays.copyOf(compressedSizes, frameCount), Arrays.copyOf(contentSizes, frameCount));
  }

  @Override
  public void flush() throws IOException {
    out.flush();
  }

  /** Closes the stream; without a preceding {@link #finish}, the file has no table. */
  @Override
  public void close() throws IOException {
    out.close();
  }
}
