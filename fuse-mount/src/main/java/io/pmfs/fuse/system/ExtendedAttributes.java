package io.pmfs.fuse.system;

import io.pmfs.metadata.FileName;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;

/** Reads the extended attributes of a file that is open, if only as a place (O_PATH). */
final class ExtendedAttributes {
  /** XATTR_LIST_MAX and XATTR_SIZE_MAX of linux/limits.h. */
  private static final int MAX_BYTES = 64 * 1024;

  private static final LibC LIBC = LibC.INSTANCE;

  private ExtendedAttributes() {}

  /**
   * All attributes that this process may read; empty where the file system has none.
   *
   * @param what names the file in a failure
   */
  static Map<FileName, byte[]> of(int file, FileName what) throws FsException {
    // Before Linux 6.13 no system call reads attributes of a file that is open as a place. This
    // path leads to the open file itself, a symbolic link included.
    byte[] path = Posix.terminated("/proc/self/fd/" + file);
    long size = LIBC.listxattr(path, new byte[1], 0);
    if (size == 0 || (size < 0 && Posix.errno() == Errno.EOPNOTSUPP)) {
      return Map.of();
    }
    byte[] list = new byte[MAX_BYTES];
    size = size < 0 ? size : LIBC.listxattr(path, list, list.length);
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
        long length = LIBC.getxattr(path, Posix.terminated(name), value, value.length);
        // One that was removed meanwhile, or that we may list but not read, counts as absent.
        if (length >= 0) {
          attributes.put(name, Arrays.copyOf(value, Math.toIntExact(length)));
        }
      }
    }
    return attributes;
  }
}
