package io.pmfs.stage.formats;

import java.io.IOException;
import java.nio.ByteBuffer;

/** The compressed frames of a copy, each with {@link #SIZE} bytes of content except the last. */
public interface Frames {
  /**
   * Bytes of content in a frame of a new copy; a divisor of a block. Chosen by measurement: see
   * decision 0013.
   */
  int SIZE = 128 * 1024;

  int PER_BLOCK = Blocks.SIZE / SIZE;

  /**
   * The most that a frame adds to its content: its header and checksum, and three bytes for each
   * 128 KiB (RFC 8878).
   */
  int OVERHEAD_BYTES = 24;

  /** Reads a frame into the destination, from its position on. */
  void readFrame(int frame, ByteBuffer destination) throws IOException;

  /** CRC32C of a frame's content. */
  int checksum(int frame);

  /** The number of frames for content of that size. */
  static int count(long contentSize, int frameSize) {
    return Math.toIntExact((contentSize + frameSize - 1) / frameSize);
  }
}
