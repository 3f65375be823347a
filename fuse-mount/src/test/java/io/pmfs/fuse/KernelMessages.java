package io.pmfs.fuse;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;

/** Bodies of requests, and listings, as in linux/fuse.h. */
final class KernelMessages {
  private KernelMessages() {}

  static ByteBuffer buffer(int size) {
    return ByteBuffer.allocate(size).order(ByteOrder.nativeOrder());
  }

  /** Text of one byte per char, NUL-terminated. */
  static byte[] name(String name) {
    return (name + '\0').getBytes(ISO_8859_1);
  }

  /** A struct fuse_read_in. */
  static byte[] read(long offset, int size) {
    return buffer(40).putLong(0).putLong(offset).putInt(size).array();
  }

  /** A struct fuse_lseek_in. */
  static byte[] lseek(long offset, int whence) {
    return buffer(24).putLong(0).putLong(offset).putInt(whence).array();
  }

  /** A struct fuse_getxattr_in. */
  static byte[] xattr(int size) {
    return buffer(8).putInt(size).putInt(0).array();
  }

  /** A struct fuse_getxattr_in and a name. */
  static byte[] xattr(int size, String name) {
    byte[] bytes = name(name);
    return buffer(8 + bytes.length).putInt(size).putInt(0).put(bytes).array();
  }

  /** A struct fuse_init_in. */
  static byte[] init(int major, int minor, long flags) {
    return buffer(64)
        .putInt(major)
        .putInt(minor)
        .putInt(128 * 1024)
        .putInt((int) flags)
        .putInt((int) (flags >>> 32))
        .array();
  }

  /** An entry of READDIR or READDIRPLUS, with only those attributes that READDIRPLUS adds. */
  record Entry(
      long inode, long next, int type, String name, long nodeId, long attributeInode, int mode) {}

  static List<Entry> entries(ByteBuffer body, boolean plus) {
    int prefix = plus ? 128 : 0;
    List<Entry> entries = new ArrayList<>();
    int at = 0;
    while (at < body.capacity()) {
      int dirent = at + prefix;
      int size = body.getInt(dirent + 16);
      byte[] name = new byte[size];
      body.get(dirent + 24, name);
      entries.add(
          new Entry(
              body.getLong(dirent),
              body.getLong(dirent + 8),
              body.getInt(dirent + 20),
              new String(name, ISO_8859_1),
              plus ? body.getLong(at) : 0,
              plus ? body.getLong(at + 40) : 0,
              plus ? body.getInt(at + 40 + 60) : 0));
      at = dirent + 24 + (size + 7) / 8 * 8;
    }
    if (at != body.capacity()) {
      throw new AssertionError("the last entry is cut short");
    }
    return entries;
  }
}
