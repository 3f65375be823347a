package io.pmfs.it;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import jnr.ffi.LibraryLoader;
import jnr.ffi.Pointer;
import jnr.ffi.Runtime;

/**
 * System calls, straight to libc. Paths and names are byte strings: one char, 0 to 255, for each
 * byte; so every name the kernel allows can be said, whatever the locale. A call that fails answers
 * minus its errno, as inside the kernel; {@link #check} makes that an exception and {@link
 * #outcome} a word.
 */
final class Posix {
  static final int O_RDONLY = 0;
  private static final int POSIX_FADV_DONTNEED = 4;
  static final int O_WRONLY = 1;
  static final int O_RDWR = 2;
  static final int O_CREAT = 0100;
  static final int O_EXCL = 0200;
  static final int O_TRUNC = 01000;
  static final int O_APPEND = 02000;
  static final int O_NONBLOCK = 04000;
  static final int O_DIRECTORY = arm() ? 040000 : 0200000;
  static final int O_NOFOLLOW = arm() ? 0100000 : 0400000;
  static final int O_TMPFILE = 020000000 | O_DIRECTORY;

  static final int R_OK = 4;
  static final int W_OK = 2;
  static final int X_OK = 1;
  static final int F_OK = 0;

  static final int SEEK_SET = 0;
  static final int SEEK_END = 2;
  static final int SEEK_DATA = 3;
  static final int SEEK_HOLE = 4;

  static final int PROT_READ = 1;
  static final int PROT_WRITE = 2;
  static final int MAP_SHARED = 1;

  static final int DT_UNKNOWN = 0;
  static final int DT_DIR = 4;
  static final int DT_REG = 8;

  static final int AT_FDCWD = -100;
  static final int AT_STATX_FORCE_SYNC = 0x2000;
  static final int AT_SYMLINK_NOFOLLOW = 0x100;

  private static final int STATX_BASIC_STATS = 0x7ff;
  private static final Map<Integer, String> ERRNO =
      Map.ofEntries(
          Map.entry(1, "EPERM"),
          Map.entry(2, "ENOENT"),
          Map.entry(5, "EIO"),
          Map.entry(110, "ETIMEDOUT"),
          Map.entry(6, "ENXIO"),
          Map.entry(9, "EBADF"),
          Map.entry(13, "EACCES"),
          Map.entry(17, "EEXIST"),
          Map.entry(18, "EXDEV"),
          Map.entry(20, "ENOTDIR"),
          Map.entry(21, "EISDIR"),
          Map.entry(22, "EINVAL"),
          Map.entry(25, "ENOTTY"),
          Map.entry(28, "ENOSPC"),
          Map.entry(30, "EROFS"),
          Map.entry(34, "ERANGE"),
          Map.entry(36, "ENAMETOOLONG"),
          Map.entry(38, "ENOSYS"),
          Map.entry(39, "ENOTEMPTY"),
          Map.entry(40, "ELOOP"),
          Map.entry(61, "ENODATA"),
          Map.entry(95, "EOPNOTSUPP"),
          Map.entry(103, "ECONNABORTED"),
          Map.entry(107, "ENOTCONN"),
          Map.entry(116, "ESTALE"));

  static final Libc LIBC = LibraryLoader.create(Libc.class).load("c");
  private static final Runtime RUNTIME = Runtime.getRuntime(LIBC);

  /** One entry of a directory; the type is dirent's, S_IFMT shifted right by 12. */
  record Entry(String name, int type, long ino) {}

  private Posix() {}

  private static boolean arm() {
    return System.getProperty("os.arch", "").equals("aarch64");
  }

  /** The byte string of a path; scratch directories have plain ASCII paths. */
  static String path(Path path) {
    return path.toString();
  }

  /** The byte string of a name that is written in UTF-8. */
  static String utf8(String name) {
    return new String(name.getBytes(java.nio.charset.StandardCharsets.UTF_8), ISO_8859_1);
  }

  static byte[] c(String byteString) {
    return Arrays.copyOf(byteString.getBytes(ISO_8859_1), byteString.length() + 1);
  }

  static long result(long returned) {
    return returned == -1 ? -RUNTIME.getLastError() : returned;
  }

  static String outcome(long result) {
    return result >= 0 ? "ok" : ERRNO.getOrDefault((int) -result, "errno " + -result);
  }

  static long check(long result) {
    if (result < 0) {
      throw new UncheckedIOException(new IOException(outcome(result)));
    }
    return result;
  }

  static int open(String path, int flags) {
    return (int) result(LIBC.open(c(path), flags, 0644));
  }

  static void close(int fd) {
    check(result(LIBC.close(fd)));
  }

  /** Opens, calls and closes; answers the call's result, or that of the open if it fails. */
  static long withFile(String path, int flags, java.util.function.IntToLongFunction call) {
    int fd = open(path, flags);
    if (fd < 0) {
      return fd;
    }
    try {
      return call.applyAsLong(fd);
    } finally {
      close(fd);
    }
  }

  static long pread(int fd, byte[] buffer, int count, long offset) {
    return result(LIBC.pread(fd, buffer, count, offset));
  }

  /** What one pread gives, which is short only at the end of the file. */
  static byte[] pread(String path, int count, long offset) {
    byte[] buffer = new byte[count];
    long got = withFile(path, O_RDONLY, fd -> pread(fd, buffer, count, offset));
    return Arrays.copyOf(buffer, (int) check(got));
  }

  /** Has the kernel forget what it keeps of a file's data, but for what is mapped. */
  static long forgetData(String path) {
    return withFile(path, O_RDONLY, fd -> -LIBC.posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED));
  }

  /** Opens and reads one byte, to see whether that is possible. */
  static long readByte(String path) {
    return withFile(path, O_RDONLY, fd -> pread(fd, new byte[1], 1, 0));
  }

  /**
   * The bytes of a mapping of a file, without regard to where the file ends. It is unmapped at
   * once, which a mapping of Java's is not, so that it does not keep the mount busy.
   */
  static byte[] mmap(String path, int size, long offset) {
    byte[] bytes = new byte[size];
    check(
        withFile(
            path,
            O_RDONLY,
            fd -> {
              Pointer mapped = LIBC.mmap(null, size, PROT_READ, MAP_SHARED, fd, offset);
              if (mapped.address() == -1) {
                return -RUNTIME.getLastError();
              }
              mapped.get(0, bytes, 0, size);
              return result(LIBC.munmap(mapped.address(), size));
            }));
    return bytes;
  }

  static long lseek(String path, long offset, int whence) {
    return withFile(path, O_RDONLY, fd -> result(LIBC.lseek(fd, offset, whence)));
  }

  static void write(String path, long offset, byte[] content) {
    long wrote =
        withFile(
            path,
            O_WRONLY | O_CREAT,
            fd -> result(LIBC.pwrite(fd, content, content.length, offset)));
    if (check(wrote) != content.length) {
      throw new UncheckedIOException(new IOException("short write to " + path));
    }
  }

  static long statOutcome(String path, int flags) {
    return statx(path, flags, new byte[Stat.BYTES]);
  }

  /** As the kernel has it: {@link Stat#parse} reads it. */
  static long statx(String path, int flags, byte[] result) {
    return result(LIBC.statx(AT_FDCWD, c(path), flags, STATX_BASIC_STATS, result));
  }

  static Stat stat(String path) {
    return stat(path, 0);
  }

  static Stat lstat(String path) {
    return stat(path, AT_SYMLINK_NOFOLLOW);
  }

  private static Stat stat(String path, int flags) {
    byte[] buffer = new byte[Stat.BYTES];
    long result = statx(path, flags, buffer);
    if (result < 0) {
      throw new UncheckedIOException(new IOException(outcome(result) + ": " + path));
    }
    return Stat.parse(buffer);
  }

  static long access(String path, int mode) {
    return result(LIBC.access(c(path), mode));
  }

  static String readlink(String path) {
    byte[] buffer = new byte[8192];
    long size = check(result(LIBC.readlink(c(path), buffer, buffer.length)));
    return new String(buffer, 0, (int) size, ISO_8859_1);
  }

  static long getxattr(String path, String name, byte[] value) {
    return result(LIBC.getxattr(c(path), c(name), value, value.length));
  }

  static byte[] xattr(String path, String name) {
    byte[] value = new byte[65536];
    return Arrays.copyOf(value, (int) check(getxattr(path, name, value)));
  }

  static long listxattr(String path, byte[] list) {
    return result(LIBC.listxattr(c(path), list, list.length));
  }

  /** The names of the user's extended attributes; security modules may add others. */
  static Set<String> userXattrs(String path) {
    byte[] list = new byte[65536];
    int size = (int) check(listxattr(path, list));
    Set<String> names = new TreeSet<>();
    for (String name : new String(list, 0, size, ISO_8859_1).split("\0", -1)) {
      if (name.startsWith("user.")) {
        names.add(name);
      }
    }
    return names;
  }

  static long setxattr(String path, String name, byte[] value) {
    return result(LIBC.setxattr(c(path), c(name), value, value.length, 0));
  }

  /** Sets both times to one value, following no symbolic link. */
  static long utimens(String path, long seconds, long nanos) {
    long[] times = {seconds, nanos, seconds, nanos};
    return result(LIBC.utimensat(AT_FDCWD, c(path), times, AT_SYMLINK_NOFOLLOW));
  }

  /** A directory's entries in the order they come, "." and ".." included. */
  static List<Entry> list(String path) {
    List<Entry> entries = new ArrayList<>();
    Pointer stream = opendir(path);
    try {
      for (Pointer e = LIBC.readdir(stream); e != null; e = LIBC.readdir(stream)) {
        entries.add(entry(e));
      }
    } finally {
      LIBC.closedir(stream);
    }
    return entries;
  }

  static Pointer opendir(String path) {
    Pointer stream = LIBC.opendir(c(path));
    if (stream == null) {
      throw new UncheckedIOException(new IOException(outcome(-RUNTIME.getLastError())));
    }
    return stream;
  }

  static Entry entry(Pointer dirent) {
    byte[] name = new byte[256];
    int length = 0;
    for (byte b = dirent.getByte(19); b != 0; b = dirent.getByte(19 + length)) {
      name[length++] = b;
    }
    return new Entry(
        new String(name, 0, length, ISO_8859_1), dirent.getByte(18), dirent.getLong(0));
  }
}
