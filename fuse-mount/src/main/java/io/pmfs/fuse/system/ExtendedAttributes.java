package io.pmfs.fuse.system;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PosixAcl;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.SourceAccess;
import io.pmfs.source.SourceStatus;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/** Reads the extended attributes of an open file, even one opened with O_PATH. */
final class ExtendedAttributes {
  /** XATTR_LIST_MAX and XATTR_SIZE_MAX of linux/limits.h. */
  private static final int MAX_BYTES = 64 * 1024;

  private static final byte[] NO_ROOM = new byte[1];

  private static final byte[] ACCESS_LIST = Posix.terminated(PosixAcl.ACCESS);

  private static final LibC LIBC = LibC.INSTANCE;

  private ExtendedAttributes() {}

  /**
   * All attributes that this process may read; empty if the file system has none.
   *
   * @param what the file, for errors
   */
  static Map<FileName, byte[]> of(int file, FileName what) throws FsException {
    return of(LIBC, file, what, false);
  }

  /**
   * All attributes, for a copy of the file; fails if this process may not read one.
   *
   * @param what the file, for errors
   */
  static Map<FileName, byte[]> toCopy(int file, FileName what) throws FsException {
    return of(LIBC, file, what, true);
  }

  static Map<FileName, byte[]> of(LibC libc, int file, FileName what, boolean isCopied)
      throws FsException {
    // Before Linux 6.13 no system call reads attributes of a file opened with O_PATH. This path
    // leads to the open file itself, even if it is a symbolic link.
    byte[] path = Posix.terminated("/proc/self/fd/" + file);
    long size = Posix.retried(() -> libc.listxattr(path, NO_ROOM, 0));
    if (size == 0 || (size < 0 && Posix.errno() == Errno.EOPNOTSUPP)) {
      return Map.of();
    }
    byte[] list = new byte[MAX_BYTES];
    size = size < 0 ? size : Posix.retried(() -> libc.listxattr(path, list, list.length));
    if (size < 0) {
      throw Posix.failure(what);
    }
    Map<FileName, byte[]> attributes = new LinkedHashMap<>();
    byte[] value = new byte[MAX_BYTES];
    int start = 0;
    for (int at = 0; at < size; at++) {
      if (list[at] == 0) {
        FileName name = FileName.of(Arrays.copyOfRange(list, start, at));
        start = at + 1;
        byte[] wanted = Posix.terminated(name);
        long length = Posix.retried(() -> libc.getxattr(path, wanted, value, value.length));
        if (length < 0 && !isAbsent(name, Posix.errno(), isCopied)) {
          throw Posix.failure(what);
        }
        if (length >= 0) {
          attributes.put(name, Arrays.copyOf(value, Math.toIntExact(length)));
        }
      }
    }
    return attributes;
  }

  /**
   * Whether an attribute that cannot be read is left out: it was removed meanwhile, or cannot be
   * shown ever, except the one that controls access.
   */
  private static boolean isAbsent(FileName name, Errno errno, boolean isCopied) {
    return switch (errno) {
      case ENODATA -> true;
      case EOPNOTSUPP, E2BIG -> !name.equals(PosixAcl.ACCESS);
      case EACCES, EPERM -> !isCopied && !name.equals(PosixAcl.ACCESS);
      default -> false;
    };
  }

  /**
   * The access-control list of a file with that status. Unlike other attributes it does not count
   * as absent if it cannot be read.
   *
   * @param what the file, for errors
   */
  static SourceAccess access(int file, SourceStatus status, FileName what) throws FsException {
    byte[] path = Posix.terminated("/proc/self/fd/" + file);
    // Nearly no file has one, so ask for its size first.
    long size = Posix.retried(() -> LIBC.getxattr(path, ACCESS_LIST, NO_ROOM, 0));
    if (size > 0) {
      byte[] list = new byte[MAX_BYTES];
      size = Posix.retried(() -> LIBC.getxattr(path, ACCESS_LIST, list, list.length));
      if (size >= 0) {
        return new SourceAccess(
            status, true, FileName.of(Arrays.copyOf(list, Math.toIntExact(size))));
      }
    }
    if (size == 0) {
      return SourceAccess.withoutList(status);
    }
    return switch (Posix.errno()) {
      case EOPNOTSUPP -> SourceAccess.withoutLists(status);
      case ENODATA -> SourceAccess.withoutList(status);
      default -> throw Posix.failure(what);
    };
  }
}
