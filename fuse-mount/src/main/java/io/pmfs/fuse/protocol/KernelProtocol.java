package io.pmfs.fuse.protocol;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.Inode;
import io.pmfs.source.StoreStatistics;
import java.nio.ByteBuffer;
import java.time.Instant;

/**
 * Numbers and layouts of the FUSE kernel protocol, version 7 (linux/fuse.h). All fields are in the
 * machine's byte order. Offsets in requests count from the start of the header; offsets in replies
 * count from the end of the header.
 */
public final class KernelProtocol {
  public static final int MAJOR = 7;

  /**
   * The version we support: 7.23 introduced the INIT reply of 64 bytes; flags negotiate later
   * features.
   */
  public static final int MINOR = 45;

  public static final int OLDEST_MINOR = 23;

  // struct fuse_in_header
  public static final int IN_HEADER_SIZE = 40;
  public static final int IN_LENGTH = 0;
  public static final int IN_OPCODE = 4;
  public static final int IN_UNIQUE = 8;
  public static final int IN_NODE = 16;
  public static final int IN_UID = 24;
  public static final int IN_GID = 28;
  public static final int IN_PID = 32;

  // struct fuse_out_header
  public static final int OUT_HEADER_SIZE = 16;
  public static final int OUT_LENGTH = 0;
  public static final int OUT_ERROR = 4;
  public static final int OUT_UNIQUE = 8;

  // struct fuse_init_in
  public static final int INIT_MAJOR = 40;
  public static final int INIT_MINOR = 44;
  public static final int INIT_READAHEAD = 48;
  public static final int INIT_FLAGS = 52;
  public static final int INIT_FLAGS2 = 56;

  // struct fuse_init_out
  public static final int INIT_OUT_SIZE = 64;

  // struct fuse_read_in, for READ, READDIR and READDIRPLUS
  public static final int READ_OFFSET = 48;
  public static final int READ_SIZE = 56;

  // struct fuse_getxattr_in, for GETXATTR and LISTXATTR
  public static final int XATTR_SIZE = 40;
  public static final int XATTR_NAME = 48;
  public static final int XATTR_OUT_SIZE = 8;

  // struct fuse_lseek_in
  public static final int LSEEK_OFFSET = 48;
  public static final int LSEEK_WHENCE = 56;
  public static final int LSEEK_OUT_SIZE = 8;

  public static final int ENTRY_OUT_SIZE = 128;
  public static final int ENTRY_OUT_GENERATION = 8;
  public static final int ENTRY_OUT_ATTR = 40;
  public static final int ATTR_OUT_SIZE = 104;
  public static final int ATTR_OUT_ATTR = 16;
  public static final int STATFS_OUT_SIZE = 80;
  public static final int DIRENT_SIZE = 24;
  public static final int STATX_OUT_SIZE = 32 + 256;
  public static final int STATX_OUT_STATX = 32;
  static final int STATX_BASIC = 0x7ff;

  // Flags of INIT; those from bit 32 on are sent in flags2.
  public static final long ASYNC_READ = 1L;
  public static final long ATOMIC_O_TRUNC = 1L << 3;
  public static final long BIG_WRITES = 1L << 5;
  public static final long AUTO_INVAL_DATA = 1L << 12;
  public static final long DO_READDIRPLUS = 1L << 13;
  public static final long READDIRPLUS_AUTO = 1L << 14;
  public static final long ASYNC_DIO = 1L << 15;
  public static final long NO_OPEN_SUPPORT = 1L << 17;
  public static final long PARALLEL_DIROPS = 1L << 18;
  public static final long POSIX_ACL = 1L << 20;
  public static final long MAX_PAGES = 1L << 22;
  public static final long CACHE_SYMLINKS = 1L << 23;
  public static final long NO_OPENDIR_SUPPORT = 1L << 24;
  public static final long EXPLICIT_INVAL_DATA = 1L << 25;
  public static final long HANDLE_KILLPRIV_V2 = 1L << 28;
  public static final long INIT_EXT = 1L << 30;
  public static final long PASSTHROUGH = 1L << 37;

  public static final long HAS_RESEND = 1L << 39;

  // enum fuse_notify_code
  public static final int NOTIFY_INVAL_INODE = 2;
  public static final int NOTIFY_RESEND = 7;

  // Flags in the answer to OPEN.
  public static final int FOPEN_DIRECT_IO = 1;
  public static final int FOPEN_KEEP_CACHE = 1 << 1;
  public static final int FOPEN_CACHE_DIR = 1 << 3;
  public static final int FOPEN_NOFLUSH = 1 << 5;
  public static final int FOPEN_PASSTHROUGH = 1 << 7;

  public static final int OPEN_OUT_SIZE = 16;

  /** 256 pages of 4 KiB: the largest read the kernel sends. */
  public static final int MAX_READ_PAGES = 256;

  public static final int MAX_READ_BYTES = MAX_READ_PAGES * 4096;

  /** The largest write that the kernel may send: as many pages as the largest read. */
  public static final int MAX_WRITE_BYTES = MAX_READ_BYTES;

  /** FUSE_MIN_READ_BUFFER: the smallest buffer for requests that the kernel accepts. */
  public static final int MIN_REQUEST_BYTES = 8192;

  /** FUSE_UNIQUE_RESEND: the kernel resent the request, to another process. */
  public static final long RESENT = 1L << 63;

  private static final int BLOCK_BYTES = 4096;

  private KernelProtocol() {}

  /** Writes a struct fuse_entry_out: the inode of a name and how long the kernel may keep both. */
  public static void putEntry(ByteBuffer out, int at, long node, Inode inode, long validSeconds) {
    putEntry(out, at, inode.number(), inode.attributes(), validSeconds);
    out.putLong(at, node);
  }

  /** The same for an inode that has the number of its node. */
  public static void putEntry(
      ByteBuffer out, int at, long number, Attributes attributes, long validSeconds) {
    out.putLong(at, number);
    out.putLong(at + ENTRY_OUT_GENERATION, 0);
    out.putLong(at + 16, validSeconds);
    out.putLong(at + 24, validSeconds);
    out.putInt(at + 32, 0);
    out.putInt(at + 36, 0);
    putAttributes(out, at + ENTRY_OUT_ATTR, number, attributes);
  }

  /**
   * Writes a struct fuse_entry_out for a name that does not exist, which the kernel may cache for
   * {@code validSeconds}.
   */
  public static void putNoEntry(ByteBuffer out, int at, long validSeconds) {
    zero(out, at, ENTRY_OUT_SIZE);
    out.putLong(at + 16, validSeconds);
  }

  /** Writes a struct fuse_attr_out. */
  public static void putAttributesReply(ByteBuffer out, int at, Inode inode, long validSeconds) {
    putAttributesReply(out, at, inode.number(), inode.attributes(), validSeconds);
  }

  /**
   * Like {@link #putAttributesReply(ByteBuffer, int, Inode, long)}, with separate number and
   * attributes.
   */
  public static void putAttributesReply(
      ByteBuffer out, int at, long number, Attributes attributes, long validSeconds) {
    out.putLong(at, validSeconds);
    out.putLong(at + 8, 0);
    putAttributes(out, at + ATTR_OUT_ATTR, number, attributes);
  }

  /** Writes a struct fuse_attr. */
  static void putAttributes(ByteBuffer out, int at, long number, Attributes attributes) {
    out.putLong(at, number);
    out.putLong(at + 8, attributes.size());
    out.putLong(at + 16, attributes.blocks());
    putTime(out, at + 24, at + 48, attributes.accessTime());
    putTime(out, at + 32, at + 52, attributes.modificationTime());
    putTime(out, at + 40, at + 56, attributes.changeTime());
    out.putInt(at + 60, attributes.mode());
    out.putInt(at + 64, attributes.linkCount());
    out.putInt(at + 68, attributes.uid());
    out.putInt(at + 72, attributes.gid());
    // The kernel's 32-bit encoding of a device equals the low half of glibc's for majors below
    // 4,096.
    out.putInt(at + 76, (int) attributes.device());
    out.putInt(at + 80, BLOCK_BYTES);
    out.putInt(at + 84, 0);
  }

  /** Writes a struct fuse_statx_out with the basic fields; birth times are not recorded. */
  public static void putStatx(ByteBuffer out, int at, Inode inode, long validSeconds) {
    putStatx(out, at, inode.number(), inode.attributes(), validSeconds);
  }

  /** Like {@link #putStatx(ByteBuffer, int, Inode, long)}, with separate number and attributes. */
  public static void putStatx(
      ByteBuffer out, int at, long number, Attributes attributes, long validSeconds) {
    zero(out, at, STATX_OUT_SIZE);
    out.putLong(at, validSeconds);
    int statx = at + STATX_OUT_STATX;
    out.putInt(statx, STATX_BASIC);
    out.putInt(statx + 4, BLOCK_BYTES);
    out.putInt(statx + 16, attributes.linkCount());
    out.putInt(statx + 20, attributes.uid());
    out.putInt(statx + 24, attributes.gid());
    out.putShort(statx + 28, (short) attributes.mode());
    out.putLong(statx + 32, number);
    out.putLong(statx + 40, attributes.size());
    out.putLong(statx + 48, attributes.blocks());
    putTime(out, statx + 64, statx + 72, attributes.accessTime());
    putTime(out, statx + 96, statx + 104, attributes.changeTime());
    putTime(out, statx + 112, statx + 120, attributes.modificationTime());
    out.putInt(statx + 128, (int) ((attributes.device() >>> 8) & 0xfff));
    out.putInt(
        statx + 132,
        (int) ((attributes.device() & 0xff) | ((attributes.device() >>> 12) & 0xfff00)));
  }

  private static void putTime(ByteBuffer out, int seconds, int nanos, Instant time) {
    out.putLong(seconds, time.getEpochSecond());
    out.putInt(nanos, time.getNano());
  }

  /** Writes a struct fuse_statfs_out. */
  public static void putStatistics(ByteBuffer out, int at, StoreStatistics statistics) {
    zero(out, at, STATFS_OUT_SIZE);
    out.putLong(at, statistics.blocks());
    out.putLong(at + 8, statistics.blocksFree());
    out.putLong(at + 16, statistics.blocksAvailable());
    out.putLong(at + 24, statistics.files());
    out.putLong(at + 32, statistics.filesFree());
    out.putInt(at + 40, (int) statistics.blockSize());
    out.putInt(at + 44, (int) statistics.nameMaximum());
    out.putInt(at + 48, (int) statistics.fragmentSize());
  }

  /** The padded size of a struct fuse_dirent. */
  public static int direntSize(int nameSize) {
    return (DIRENT_SIZE + nameSize + 7) & ~7;
  }

  /** Writes a struct fuse_dirent with its name and padding. */
  public static void putDirent(
      ByteBuffer out, int at, long inode, long nextOffset, int type, FileName name) {
    int size = name.size();
    out.putLong(at, inode);
    out.putLong(at + 8, nextOffset);
    out.putInt(at + 16, size);
    out.putInt(at + 20, type);
    out.put(at + DIRENT_SIZE, name.bytes());
    for (int i = at + DIRENT_SIZE + size; i < at + direntSize(size); i++) {
      out.put(i, (byte) 0);
    }
  }

  public static void zero(ByteBuffer out, int at, int size) {
    for (int i = 0; i < size; i += Long.BYTES) {
      out.putLong(at + i, 0);
    }
  }
}
