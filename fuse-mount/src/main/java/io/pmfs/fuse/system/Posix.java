package io.pmfs.fuse.system;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.StoreStatistics;
import java.nio.channels.FileChannel;
import java.time.Instant;
import jnr.constants.platform.OpenFlags;
import jnr.ffi.LastError;
import jnr.ffi.Platform;
import jnr.ffi.Pointer;
import jnr.ffi.Runtime;
import jnr.posix.JavaLibCHelper;

/**
 * Numbers and layouts of Linux's system call interface. Turns errno into an exception, in this one
 * place.
 */
public final class Posix {
  public static final Runtime RUNTIME = Runtime.getSystemRuntime();

  public static final int AT_FDCWD = -100;
  public static final int AT_SYMLINK_NOFOLLOW = 0x100;
  public static final int AT_EMPTY_PATH = 0x1000;
  static final int AT_STATX_DONT_SYNC = 0x4000;
  public static final int STATX_BASIC_STATS = 0x7ff;
  static final int STATX_BTIME = 0x800;

  /** Offset of stx_attributes in struct statx, and two of its bits (linux/stat.h). */
  static final int STATX_ATTRIBUTES = 8;

  static final long STATX_ATTR_IMMUTABLE = 0x10;
  static final long STATX_ATTR_APPEND = 0x20;
  public static final int STATX_SIZE = 256;
  static final int STATVFS_SIZE = 256;
  public static final int SEEK_DATA = 3;
  public static final int SEEK_HOLE = 4;
  public static final int O_RDWR = 2;
  public static final int MNT_FORCE = 1;
  public static final int MNT_DETACH = 2;
  public static final int UMOUNT_NOFOLLOW = 8;

  // O_PATH and O_CLOEXEC are the same on x86-64 and AArch64; O_NOFOLLOW and O_DIRECTORY are not.
  public static final int O_PATH = 0x200000;
  public static final int O_CLOEXEC = 0x80000;
  public static final int O_NONBLOCK = 0x800;
  public static final int O_NOFOLLOW = OpenFlags.O_NOFOLLOW.intValue();
  public static final int O_DIRECTORY = OpenFlags.O_DIRECTORY.intValue();

  static final long SYS_GETDENTS64 =
      switch (Platform.getNativePlatform().getCPU()) {
        case X86_64 -> 217;
        case AARCH64 -> 61;
        default ->
            throw new UnsupportedOperationException(
                "pmfs runs on x86-64 and AArch64, not on " + Platform.getNativePlatform().getCPU());
      };

  private static final int ATTEMPTS_AT_ONCE = 10;

  /** The pauses are 1, 2, 3 ... ms. */
  private static final int ATTEMPTS = 50;

  private Posix() {}

  public static Errno errno() {
    return Errno.of(LastError.getLastError(RUNTIME));
  }

  /** A system call: negative, with errno, if it fails. */
  interface SystemCall {
    long run();
  }

  /**
   * Retries a system call interrupted by a signal (EINTR) or refused for the moment (EAGAIN):
   * network file systems and FUSE pass on both. Gives up after one or two seconds, because some
   * never stop.
   */
  static long retried(SystemCall call) {
    return retried(call, true);
  }

  /**
   * Like {@link #retried}, for a call that changes a name. An interrupted call may have succeeded:
   * if the retry fails, the result is EINTR, and the caller has to check.
   */
  static long retriedUnlessMade(SystemCall call) {
    long result = retried(call, false);
    for (int attempt = 1; attempt < ATTEMPTS && isInterrupted(result); attempt++) {
      result = retried(call, false);
      if (result < 0 && !isInterrupted(result)) {
        LastError.setLastError(RUNTIME, Errno.EINTR.number());
        return result;
      }
    }
    return result;
  }

  private static boolean isInterrupted(long result) {
    return result < 0 && errno() == Errno.EINTR;
  }

  /** Like {@link #retried}, for a call whose repetition would undo it: not retried after EINTR. */
  static long retriedUnlessInterrupted(SystemCall call) {
    return retried(call, false);
  }

  private static long retried(SystemCall call, boolean isInterruptible) {
    for (int attempt = 1; ; attempt++) {
      long result = call.run();
      if (result >= 0 || attempt == ATTEMPTS) {
        return result;
      }
      Errno errno = errno();
      if (errno != Errno.EAGAIN && !(isInterruptible && errno == Errno.EINTR)) {
        return result;
      }
      if (errno == Errno.EAGAIN || attempt > ATTEMPTS_AT_ONCE) {
        try {
          Thread.sleep(attempt);
        } catch (InterruptedException e) {
          Thread.currentThread().interrupt();
          return result;
        }
      }
    }
  }

  /**
   * The descriptor of an open file; negative if the JDK denies access ({@code --add-opens}
   * missing).
   */
  static int descriptor(FileChannel file) {
    return JavaLibCHelper.getfdFromDescriptor(JavaLibCHelper.getDescriptorFromChannel(file));
  }

  static FsException failure(FileName what) {
    return new FsException(errno(), what.toString());
  }

  /** The bytes of a name with the NUL that system calls require. */
  public static byte[] terminated(FileName name) {
    byte[] bytes = name.bytes();
    return java.util.Arrays.copyOf(bytes, bytes.length + 1);
  }

  public static byte[] terminated(String text) {
    byte[] bytes = text.getBytes(UTF_8);
    return java.util.Arrays.copyOf(bytes, bytes.length + 1);
  }

  // struct statx, linux/stat.h; the same on every architecture.

  public static Attributes attributes(Pointer statx) {
    return new Attributes(
        statx.getShort(28) & 0xffff,
        statx.getInt(16),
        statx.getInt(20),
        statx.getInt(24),
        makedev(statx.getInt(128), statx.getInt(132)),
        statx.getLongLong(40),
        statx.getLongLong(48),
        instant(statx, 64),
        instant(statx, 112),
        instant(statx, 96));
  }

  static long inode(Pointer statx) {
    return statx.getLongLong(32);
  }

  /** The device that holds the file. */
  static long device(Pointer statx) {
    return makedev(statx.getInt(136), statx.getInt(140));
  }

  /**
   * Identifies the file on its device: its inode number, and its birth time if known, since the
   * roots of all ext4 file systems have the same inode number.
   */
  static String identity(Pointer statx) {
    boolean hasBirth = (statx.getInt(0) & STATX_BTIME) != 0;
    return "inode "
        + Long.toUnsignedString(inode(statx))
        + (hasBirth ? " of " + instant(statx, 80) : "");
  }

  private static Instant instant(Pointer statx, int offset) {
    return Instant.ofEpochSecond(statx.getLongLong(offset), statx.getInt(offset + 8) & 0xffffffffL);
  }

  /** Composes a dev_t as glibc's makedev(3) does. */
  static long makedev(int major, int minor) {
    return ((major & 0xfffL) << 8)
        | ((major & 0xfffff000L) << 32)
        | (minor & 0xffL)
        | ((minor & 0xffffff00L) << 12);
  }

  /** Converts a struct statvfs as 64-bit glibc defines it. */
  static StoreStatistics statistics(Pointer statvfs) {
    return new StoreStatistics(
        statvfs.getLongLong(0),
        statvfs.getLongLong(8),
        statvfs.getLongLong(16),
        statvfs.getLongLong(24),
        statvfs.getLongLong(32),
        statvfs.getLongLong(40),
        statvfs.getLongLong(48),
        statvfs.getLongLong(80));
  }
}
