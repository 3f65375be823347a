package io.pmfs.cache;

import static java.nio.file.StandardOpenOption.READ;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.util.function.LongConsumer;
import java.util.zip.CRC32C;

/** Verifies whole copies against their checksums. */
final class CopyContent {
  private static final int COMPARED_BYTES = 256 << 10;

  private CopyContent() {}

  /**
   * The CRC32C of the first bytes of a file.
   *
   * @param progress is called with the number of bytes of each part that was read
   */
  static int checksum(Path file, long size, LongConsumer progress) throws IOException {
    CRC32C crc = new CRC32C();
    ByteBuffer buffer = ByteBuffer.allocate(COMPARED_BYTES);
    try (FileChannel channel = FileChannel.open(file, READ)) {
      for (long at = 0; at < size; at += buffer.limit()) {
        fill(buffer, channel, at, size);
        crc.update(buffer);
        progress.accept(buffer.limit());
      }
    }
    return (int) crc.getValue();
  }

  /** Fills the buffer, or reads the rest of the file, and flips the buffer. */
  private static void fill(ByteBuffer buffer, FileChannel channel, long at, long size)
      throws IOException {
    buffer.clear().limit((int) Math.min(buffer.capacity(), size - at));
    while (buffer.hasRemaining()) {
      if (channel.read(buffer, at + buffer.position()) < 0) {
        throw new EOFException("truncated");
      }
    }
    buffer.flip();
  }
}
