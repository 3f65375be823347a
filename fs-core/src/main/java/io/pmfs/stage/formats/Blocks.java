package io.pmfs.stage.formats;

import io.pmfs.metadata.SourceVersion;
import java.nio.ByteBuffer;
import java.util.zip.CRC32C;

/**
 * Divides a file's content into blocks: the unit in which it is fetched, checksummed and verified.
 */
public final class Blocks {
  /**
   * Bytes in a block, except the last of a file. At most one request of the kernel (1 MiB,
   * FUSE_MAX_MAX_PAGES), and large enough to keep requests to a source with latency rare.
   */
  public static final int SIZE = 1 << 20;

  private Blocks() {}

  public static int count(SourceVersion version) {
    return Math.toIntExact((version.size() + SIZE - 1) / SIZE);
  }

  public static int index(long offset) {
    return Math.toIntExact(offset / SIZE);
  }

  public static long offset(int index) {
    return (long) index * SIZE;
  }

  /** Bytes in one block of a file of that version. */
  public static int size(SourceVersion version, int index) {
    return (int) Math.min(SIZE, version.size() - offset(index));
  }

  /** CRC32C (RFC 3720) of the remaining bytes, whose position does not change. */
  public static int checksum(ByteBuffer bytes) {
    CRC32C crc = new CRC32C();
    crc.update(bytes.duplicate());
    return (int) crc.getValue();
  }
}
