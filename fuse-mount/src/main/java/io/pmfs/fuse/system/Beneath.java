package io.pmfs.fuse.system;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import jnr.ffi.Memory;
import jnr.ffi.Pointer;

/**
 * Opens files below an open directory in which other users may change names at any time. It follows
 * no symbolic link, not even as the last component, and never leaves the directory, but it enters
 * mounts. This is the only class that opens paths of several components in directories that others
 * can write: docs/decisions/0050.
 *
 * <p>One openat2(2) opens the whole path. Linux before 5.6 and the system call filters of some
 * containers refuse that call; then each component is opened separately with O_NOFOLLOW.
 * Thread-safe.
 */
public final class Beneath {
  /**
   * Paths are opened in steps below this length: a system call accepts 4,095 bytes (PATH_MAX), but
   * a tree may be deeper.
   */
  private static final int STEP_BYTES = 4000;

  private static final int DIRECTORY = Posix.O_PATH | Posix.O_DIRECTORY;

  // linux/openat2.h; the number is the same on every architecture.
  private static final long SYS_OPENAT2 = 437;
  private static final int RESOLVE_NO_MAGICLINKS = 2;
  private static final int RESOLVE_NO_SYMLINKS = 4;
  private static final int RESOLVE_BENEATH = 8;
  private static final int HOW_SIZE = 24;

  private static final LibC LIBC = LibC.INSTANCE;
  private static final FileLibC FILES = FileLibC.INSTANCE;
  private static final byte[] TOP = {'/', 0};
  private static final byte[] DOT = {'.', 0};

  /** A struct open_how for each combination of flags in use: a few. */
  private static final Map<Integer, Pointer> HOWS = new ConcurrentHashMap<>();

  /**
   * Uses openat2(2) if it works here. Initialized last, because the check needs the constants
   * above.
   */
  public static final Beneath HERE = new Beneath(hasOpenat2());

  private final boolean hasOpenat2;

  Beneath(boolean hasOpenat2) {
    this.hasOpenat2 = hasOpenat2;
  }

  private static boolean hasOpenat2() {
    int file = openat2(Posix.AT_FDCWD, DOT, DIRECTORY | Posix.O_CLOEXEC);
    if (file < 0) {
      return false;
    }
    LIBC.close(file);
    return true;
  }

  /**
   * Opens a path for the caller, who closes the descriptor.
   *
   * @param directory an open directory
   * @param path below it; empty for the directory itself
   * @param flags of open(2), without O_CREAT; O_NOFOLLOW and O_CLOEXEC are added. With O_PATH a
   *     symbolic link at the end is itself opened
   * @throws FsException ENOTDIR if a component before the last one is a symbolic link, ELOOP if the
   *     last one is one; EXDEV if the path leads outside; else the system's error
   */
  public int open(int directory, FileName path, int flags) throws FsException {
    int all = flags | Posix.O_NOFOLLOW | Posix.O_CLOEXEC;
    byte[] rest = path.bytes();
    requireBelow(rest, path);
    if (rest.length <= STEP_BYTES) {
      return openStep(directory, rest, all, path);
    }
    int at = directory;
    try {
      while (rest.length > STEP_BYTES) {
        int cut = lastSlash(rest, path);
        int next =
            openStep(
                at, Arrays.copyOf(rest, cut), DIRECTORY | Posix.O_NOFOLLOW | Posix.O_CLOEXEC, path);
        closeUnless(at, directory);
        at = next;
        rest = Arrays.copyOfRange(rest, cut + 1, rest.length);
      }
      return openStep(at, rest, all, path);
    } finally {
      closeUnless(at, directory);
    }
  }

  /**
   * Opens an absolute path that the caller has resolved; fails if it now contains a symbolic link.
   */
  public int open(Path absolute, int flags) throws FsException {
    FileName what = FileName.of(absolute.toString());
    int top = openat(Posix.AT_FDCWD, TOP, DIRECTORY | Posix.O_CLOEXEC);
    if (top < 0) {
      throw Posix.failure(what);
    }
    try {
      byte[] path = what.bytes();
      return open(top, FileName.of(Arrays.copyOfRange(path, 1, path.length)), flags);
    } catch (FsException e) {
      throw new FsException(e.errno(), absolute.toString(), e);
    } finally {
      LIBC.close(top);
    }
  }

  /**
   * Names from a source, a peer or an index are arbitrary bytes: none may be "..", or start with /.
   */
  private static void requireBelow(byte[] path, FileName what) throws FsException {
    int start = 0;
    for (int at = 0; at <= path.length; at++) {
      if (at == path.length || path[at] == '/') {
        boolean isUp = at - start == 2 && path[start] == '.' && path[start + 1] == '.';
        if (isUp || (at == 0 && path.length > 0)) {
          throw new FsException(Errno.EXDEV, what.toString());
        }
        start = at + 1;
      }
    }
  }

  private static int lastSlash(byte[] path, FileName what) throws FsException {
    int cut = STEP_BYTES;
    while (cut > 0 && path[cut] != '/') {
      cut--;
    }
    if (cut == 0) {
      throw new FsException(Errno.ENAMETOOLONG, what.toString());
    }
    return cut;
  }

  private int openStep(int directory, byte[] path, int flags, FileName what) throws FsException {
    byte[] name = path.length == 0 ? DOT : Arrays.copyOf(path, path.length + 1);
    if (!hasOpenat2) {
      return walk(directory, name, flags, what);
    }
    int file = openat2(directory, name, flags);
    if (file >= 0) {
      return file;
    }
    Errno errno = Posix.errno();
    return switch (errno) {
      // EAGAIN and EXDEV: a directory of the path was moved meanwhile. ELOOP: find the component.
      // EINTR: retry.
      case EAGAIN, EXDEV, ELOOP, EINTR -> walk(directory, name, flags, what);
      default -> throw new FsException(errno, what.toString());
    };
  }

  private static int openat2(int directory, byte[] path, int flags) {
    Pointer how = HOWS.computeIfAbsent(flags, Beneath::how);
    return (int) FileUsers.call(() -> FILES.syscall(SYS_OPENAT2, directory, path, how, HOW_SIZE));
  }

  private static Pointer how(int flags) {
    Pointer how = Memory.allocateDirect(Posix.RUNTIME, HOW_SIZE);
    how.putLongLong(0, flags);
    how.putLongLong(8, 0);
    how.putLongLong(16, RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH);
    return how;
  }

  /** Opens a path one component after the other. */
  static int walk(int directory, FileName path) throws FsException {
    return walk(directory, Posix.terminated(path), DIRECTORY | Posix.O_NOFOLLOW, path);
  }

  /** Opens the components of a NUL-terminated path one by one. */
  private static int walk(int directory, byte[] path, int flags, FileName what) throws FsException {
    int at = directory;
    int start = 0;
    try {
      while (true) {
        int end = start;
        while (path[end] != 0 && path[end] != '/') {
          end++;
        }
        boolean isLast = path[end] == 0;
        byte[] name = Arrays.copyOf(Arrays.copyOfRange(path, start, end), end - start + 1);
        int step = isLast ? flags : DIRECTORY | Posix.O_NOFOLLOW | Posix.O_CLOEXEC;
        int next = openat(at, name, step);
        if (next < 0) {
          throw Posix.failure(what);
        }
        if (isLast) {
          return next;
        }
        closeUnless(at, directory);
        at = next;
        start = end + 1;
      }
    } finally {
      closeUnless(at, directory);
    }
  }

  private static int openat(int directory, byte[] name, int flags) {
    return (int) Posix.retried(() -> FileUsers.call(() -> LIBC.openat(directory, name, flags)));
  }

  private static void closeUnless(int file, int kept) {
    if (file != kept) {
      LIBC.close(file);
    }
  }
}
