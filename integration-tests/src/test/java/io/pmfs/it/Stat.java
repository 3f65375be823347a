package io.pmfs.it;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * What statx(2) says of a file; it is laid out alike on every architecture, struct stat is not.
 *
 * @param mode type and permission bits
 * @param rdev major number shifted left by 32, and minor number
 * @param blocks 512-byte units
 */
record Stat(
    long ino,
    int mode,
    int nlink,
    int uid,
    int gid,
    long rdev,
    long size,
    long blocks,
    long mtimeSeconds,
    int mtimeNanos) {

  static final int BYTES = 256;

  static final int S_IFMT = 0170000;
  static final int S_IFSOCK = 0140000;
  static final int S_IFLNK = 0120000;
  static final int S_IFREG = 0100000;
  static final int S_IFDIR = 0040000;
  static final int S_IFCHR = 0020000;
  static final int S_IFIFO = 0010000;

  static Stat parse(byte[] statx) {
    ByteBuffer b = ByteBuffer.wrap(statx).order(ByteOrder.nativeOrder());
    return new Stat(
        b.getLong(32),
        b.getShort(28) & 0xffff,
        b.getInt(16),
        b.getInt(20),
        b.getInt(24),
        ((long) b.getInt(128) << 32) | b.getInt(132),
        b.getLong(40),
        b.getLong(48),
        b.getLong(112),
        b.getInt(120));
  }

  int type() {
    return mode & S_IFMT;
  }

  int permissions() {
    return mode & 07777;
  }
}
