package io.pmfs.pack;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;

/** A file that is written sequentially, with the SHA-256 of its bytes. */
final class ShardOutput implements AutoCloseable {
  private static final int BUFFER_BYTES = 1 << 20;

  private final FileChannel channel;
  private final MessageDigest digest = sha256();
  private final byte[] buffer = new byte[BUFFER_BYTES];
  private int filled;
  private long size;

  ShardOutput(Path file) throws IOException {
    channel =
        FileChannel.open(
            file,
            StandardOpenOption.CREATE,
            StandardOpenOption.TRUNCATE_EXISTING,
            StandardOpenOption.WRITE);
  }

  static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError(e); // every Java has it
    }
  }

  /** The stream to the file. Closing it has no effect, because the end of the file follows. */
  OutputStream stream() {
    return new OutputStream() {
      @Override
      public void write(int b) throws IOException {
        write(new byte[] {(byte) b}, 0, 1);
      }

      @Override
      public void write(byte[] bytes, int offset, int count) throws IOException {
        append(bytes, offset, count);
      }
    };
  }

  private void append(byte[] bytes, int offset, int count) throws IOException {
    int at = offset;
    while (at < offset + count) {
      int fits = Math.min(offset + count - at, BUFFER_BYTES - filled);
      System.arraycopy(bytes, at, buffer, filled, fits);
      filled += fits;
      at += fits;
      if (filled == BUFFER_BYTES) {
        drain();
      }
    }
  }

  private void drain() throws IOException {
    digest.update(buffer, 0, filled);
    ByteBuffer rest = ByteBuffer.wrap(buffer, 0, filled);
    while (rest.hasRemaining()) {
      channel.write(rest);
    }
    size += filled;
    filled = 0;
  }

  /** Syncs the file and returns its checksum. Nothing may be written afterwards. */
  String finish() throws IOException {
    drain();
    channel.force(true);
    return HexFormat.of().formatHex(digest.digest());
  }

  /** Bytes on the disk. */
  long size() {
    return size;
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }
}
