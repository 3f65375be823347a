package io.pmfs.stage;

import java.io.IOException;
import java.nio.ByteBuffer;

/** The compressed frames of a copy, each of {@link #SIZE} bytes of content but for the last. */
interface Frames {
  /**
   * Bytes of content in a frame of a new copy; a divisor of a block. Measured: decision 0013 has
   * the figures.
   */
  int SIZE = 128 * 1024;

  int PER_BLOCK = Blocks.SIZE / SIZE;

  /**
   * No frame that a codec wrote takes more than its content and this: its header and checksum, and
   * three bytes for each 128 KiB (RFC 8878).
   */
  int OVERHEAD_BYTES = 24;

  /** Reads a frame to the destination's position. */
  void read(int frame, ByteBuffer destination) throws IOException;

  /** CRC32C of a frame's content. */
  int checksum(int frame);

  /** Frames of that size in so many bytes of content. */
  static int count(long contentSize, int frameSize) {
    return Math.toIntExact((contentSize + frameSize - 1) / frameSize);
  }
}
