package io.pmfs.fuse.system;

import io.pmfs.metadata.FileIdentity;
import io.pmfs.metadata.FileName;
import io.pmfs.tier.BackingStore;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.tier.SourceFile;
import io.pmfs.tier.SourceStatus;
import io.pmfs.tier.StoreStatistics;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import jnr.ffi.Memory;
import jnr.ffi.Pointer;
import org.jspecify.annotations.Nullable;

/**
 * A directory tree on any mounted file system as the source of a dataset, through direct system
 * calls. The JDK's file API supports only names that are text, reports no errno and no link counts
 * with inode numbers, and reads only the user's extended attributes.
 *
 * <p>The root is held open, so the source stays the same when its path is renamed or mounted over.
 */
public final class DirectoryStore implements BackingStore {
  /**
   * Paths are resolved in steps below this length: a system call accepts 4,095 bytes (PATH_MAX),
   * but a tree may be deeper.
   */
  private static final int STEP_BYTES = 4000;

  private static final int POSIX_FADV_SEQUENTIAL = 2;
  private static final int LISTING_BYTES = 64 * 1024;
  private static final int LINK_BYTES = 4096;

  /** XATTR_LIST_MAX and XATTR_SIZE_MAX of linux/limits.h. */
  private static final int XATTR_BYTES = 64 * 1024;

  private static final LibC LIBC = LibC.INSTANCE;
  private static final byte[] EMPTY_PATH = {0};

  private final String path;
  private final int root;
  private final long rootDevice;
  private final String identity;

  /**
   * One buffer for each concurrent listing. Kept, because the collector would have to free them.
   */
  private final Queue<Pointer> listings = new ConcurrentLinkedQueue<>();

  /**
   * Opens the root.
   *
   * @param path a directory, absolute
   * @throws FsException if it cannot be opened or is not a directory
   */
  public DirectoryStore(Path path) throws FsException {
    this.path = path.toString();
    this.root =
        LIBC.openat(
            Posix.AT_FDCWD,
            Posix.terminated(this.path),
            Posix.O_PATH | Posix.O_DIRECTORY | Posix.O_CLOEXEC);
    if (root < 0) {
      throw new FsException(Posix.errno(), this.path);
    }
    try {
      int wanted = Posix.STATX_BASIC_STATS | Posix.STATX_BTIME;
      Pointer status = statx(root, EMPTY_PATH, FileName.of(this.path), wanted);
      this.rootDevice = Posix.device(status);
      this.identity = Posix.identity(status);
    } catch (FsException e) {
      LIBC.close(root);
      throw e;
    }
  }

  /**
   * Identifies this directory independently of its current path, device and content. Different
   * texts mean different directories.
   */
  public String identity() {
    return identity;
  }

  @Override
  public SourceStatus status(FileName path) throws FsException {
    try (Place place = resolve(path)) {
      return status(statx(place.directory, place.path, path));
    }
  }

  private SourceStatus status(Pointer statx) {
    long device = Posix.device(statx);
    return new SourceStatus(
        new FileIdentity(device == rootDevice ? 0 : device, Posix.inode(statx)),
        Posix.attributes(statx));
  }

  private static Pointer statx(int directory, byte[] path, FileName name) throws FsException {
    return statx(directory, path, name, Posix.STATX_BASIC_STATS);
  }

  private static Pointer statx(int directory, byte[] path, FileName name, int wanted)
      throws FsException {
    Pointer result = Memory.allocateDirect(Posix.RUNTIME, Posix.STATX_SIZE);
    int flags = Posix.AT_SYMLINK_NOFOLLOW | (path.length == 1 ? Posix.AT_EMPTY_PATH : 0);
    if (LIBC.statx(directory, path, flags, wanted, result) != 0) {
      throw Posix.failure(name);
    }
    return result;
  }

  @Override
  public void list(FileName directory, NameConsumer batches) throws FsException {
    int file;
    try (Place place = resolve(directory)) {
      byte[] relative = place.path.length == 1 ? new byte[] {'.', 0} : place.path;
      file =
          LIBC.openat(
              place.directory, relative, Posix.O_DIRECTORY | Posix.O_NOFOLLOW | Posix.O_CLOEXEC);
      if (file < 0) {
        throw Posix.failure(directory);
      }
    }
    try {
      list(directory, file, batches);
    } finally {
      LIBC.close(file);
    }
  }

  private void list(FileName directory, int file, NameConsumer batches) throws FsException {
    Pointer kept = listings.poll();
    Pointer buffer = kept == null ? Memory.allocateDirect(Posix.RUNTIME, LISTING_BYTES) : kept;
    try {
      while (true) {
        long count = LIBC.syscall(Posix.SYS_GETDENTS64, file, buffer, LISTING_BYTES);
        if (count < 0) {
          throw Posix.failure(directory);
        }
        if (count == 0 || !batches.accept(names(buffer, count))) {
          return;
        }
      }
    } finally {
      listings.add(buffer);
    }
  }

  /**
   * Parses the names in a buffer of struct linux_dirent64: inode 8, offset 8, record length 2, type
   * 1, name up to a NUL.
   */
  private static List<FileName> names(Pointer buffer, long count) {
    List<FileName> names = new ArrayList<>();
    for (long at = 0; at < count; at += buffer.getShort(at + 16) & 0xffff) {
      int size = buffer.indexOf(at + 19, (byte) 0);
      byte[] name = new byte[size];
      buffer.get(at + 19, name, 0, size);
      boolean dots =
          (size == 1 && name[0] == '.') || (size == 2 && name[0] == '.' && name[1] == '.');
      if (!dots) {
        names.add(FileName.of(name));
      }
    }
    return names;
  }

  @Override
  public FileName readSymbolicLink(FileName path) throws FsException {
    byte[] target = new byte[LINK_BYTES];
    try (Place place = resolve(path)) {
      long size = LIBC.readlinkat(place.directory, place.path, target, target.length);
      if (size < 0) {
        throw Posix.failure(path);
      }
      return FileName.of(Arrays.copyOf(target, Math.toIntExact(size)));
    }
  }

  @Override
  public SourceFile open(FileName path) throws FsException {
    try (Place place = resolve(path)) {
      // Without O_NONBLOCK, opening a path that became a FIFO would block.
      int flags = Posix.O_NOFOLLOW | Posix.O_NONBLOCK | Posix.O_CLOEXEC;
      int file = LIBC.openat(place.directory, place.path, flags);
      if (file < 0) {
        throw Posix.failure(path);
      }
      // Many threads read blocks of a file. The kernel takes this for random access and would send
      // small requests to a network file system: see docs/decisions/0020. This is only advice.
      LIBC.posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
      return new OpenFile(path, file);
    }
  }

  @Override
  public Map<FileName, byte[]> extendedAttributes(FileName path) throws FsException {
    // Before Linux 6.13 no system call reads attributes below an open directory. The path by which
    // the root was opened may lead to another directory by now, even to our own mount.
    try (Place place = resolve(path)) {
      FileName directory = FileName.of("/proc/self/fd/" + place.directory);
      FileName rest =
          place.path.length == 1
              ? FileName.of(".")
              : FileName.of(Arrays.copyOf(place.path, place.path.length - 1));
      return extendedAttributes(path, Posix.terminated(directory.resolve(rest)));
    }
  }

  private static Map<FileName, byte[]> extendedAttributes(FileName path, byte[] absolute)
      throws FsException {
    byte[] list = new byte[XATTR_BYTES];
    long size = LIBC.llistxattr(absolute, list, list.length);
    if (size < 0) {
      if (Posix.errno() == Errno.EOPNOTSUPP) {
        return Map.of();
      }
      throw Posix.failure(path);
    }
    Map<FileName, byte[]> attributes = new LinkedHashMap<>();
    byte[] value = new byte[XATTR_BYTES];
    int start = 0;
    for (int at = 0; at < size; at++) {
      if (list[at] == 0) {
        FileName name = FileName.of(Arrays.copyOfRange(list, start, at));
        start = at + 1;
        long length = LIBC.lgetxattr(absolute, Posix.terminated(name), value, value.length);
        // A file that was removed meanwhile, or that we may list but not read, counts as absent.
        if (length >= 0) {
          attributes.put(name, Arrays.copyOf(value, Math.toIntExact(length)));
        }
      }
    }
    return attributes;
  }

  @Override
  public StoreStatistics statistics() throws FsException {
    Pointer result = Memory.allocateDirect(Posix.RUNTIME, Posix.STATVFS_SIZE);
    if (LIBC.fstatvfs(root, result) != 0) {
      throw new FsException(Posix.errno(), path);
    }
    return Posix.statistics(result);
  }

  @Override
  public void close() {
    LIBC.close(root);
  }

  /**
   * Resolves a path to a directory and a remaining path that is short enough for one system call.
   */
  private Place resolve(FileName path) throws FsException {
    byte[] rest = path.bytes();
    Place place = new Place(root, false);
    while (rest.length > STEP_BYTES) {
      int cut = STEP_BYTES;
      while (cut > 0 && rest[cut] != '/') {
        cut--;
      }
      byte[] step = Arrays.copyOf(rest, cut + 1);
      step[cut] = 0;
      int next =
          cut == 0
              ? -1
              : LIBC.openat(
                  place.directory,
                  step,
                  Posix.O_PATH | Posix.O_DIRECTORY | Posix.O_NOFOLLOW | Posix.O_CLOEXEC);
      Errno errno = cut == 0 ? Errno.ENAMETOOLONG : Posix.errno();
      place.close();
      if (next < 0) {
        throw new FsException(errno, path.toString());
      }
      place = new Place(next, true);
      rest = Arrays.copyOfRange(rest, cut + 1, rest.length);
    }
    place.path = Arrays.copyOf(rest, rest.length + 1);
    return place;
  }

  private static final class Place implements AutoCloseable {
    private final int directory;
    private final boolean owned;
    private byte[] path = EMPTY_PATH;

    Place(int directory, boolean owned) {
      this.directory = directory;
      this.owned = owned;
    }

    @Override
    public void close() {
      if (owned) {
        LIBC.close(directory);
      }
    }
  }

  private final class OpenFile implements SourceFile {
    private final FileName name;
    private final int file;

    OpenFile(FileName name, int file) {
      this.name = name;
      this.file = file;
    }

    @Override
    public int read(long offset, ByteBuffer destination) throws FsException {
      return PassedFile.read(file, name, offset, destination);
    }

    @Override
    public int descriptor() {
      return file;
    }

    @Override
    public long seekData(long offset) throws FsException {
      return seek(offset, Posix.SEEK_DATA);
    }

    @Override
    public long seekHole(long offset) throws FsException {
      return seek(offset, Posix.SEEK_HOLE);
    }

    /** Moves the file offset, which nothing here uses. */
    private long seek(long offset, int whence) throws FsException {
      long found = LIBC.lseek(file, offset, whence);
      if (found < 0) {
        throw Posix.failure(name);
      }
      return found;
    }

    @Override
    public SourceStatus status() throws FsException {
      return DirectoryStore.this.status(statx(file, EMPTY_PATH, name));
    }

    @Override
    public void close() {
      LIBC.close(file);
    }

    @Override
    public @Nullable String toString() {
      return name.toString();
    }
  }
}
