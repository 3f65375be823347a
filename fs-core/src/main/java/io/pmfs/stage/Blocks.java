package io.pmfs.stage;

import io.pmfs.metadata.SourceVersion;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/** How a file's content is cut: the unit that is fetched, checksummed and verified. */
public final class Blocks {
  /**
   * Bytes in a block, but for the last of a file. One request of the kernel at most (1 MiB,
   * FUSE_MAX_MAX_PAGES), and large enough that a source with latency is asked rarely.
   */
  public static final int SIZE = 1 << 20;

  private Blocks() {}

  public static int count(SourceVersion version) {
    return Math.toIntExact((version.size() + SIZE - 1) / SIZE);
  }

  static int index(long offset) {
    return Math.toIntExact(offset / SIZE);
  }

  static long offset(int index) {
    return (long) index * SIZE;
  }

  /** Bytes in one block of a file of that version. */
  static int size(SourceVersion version, int index) {
    return (int) Math.min(SIZE, version.size() - offset(index));
  }

  /** CRC32C (RFC 3720) of the remaining bytes, whose position stays. */
  public static int checksum(ByteBuffer bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes.duplicate());
    return (int) crc.getValue();
  }
}
