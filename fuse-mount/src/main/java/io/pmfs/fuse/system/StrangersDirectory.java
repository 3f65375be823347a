package io.pmfs.fuse.system;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import jnr.ffi.Memory;
import jnr.ffi.Pointer;

/**
 * The directory of another user, who may change its names at any moment. It is opened once, and its
 * files are used only by descriptors: an O_PATH descriptor, which cannot block, is inspected first,
 * and only a regular file of that user is opened, through that descriptor. Mounts in the directory
 * are never entered. Used by one thread.
 *
 * <p>A call can still take as long as the user's disk: set a time limit.
 */
public final class StrangersDirectory implements AutoCloseable {
  private static final byte[] EMPTY_PATH = {0};
  private static final LibC LIBC = LibC.INSTANCE;

  private final Path path;
  private final long owner;
  private final int descriptor;
  private final String mount;

  private StrangersDirectory(Path path, long owner, int descriptor, String mount) {
    this.path = path;
    this.owner = owner;
    this.descriptor = descriptor;
    this.mount = mount;
  }

  /**
   * Opens the directory.
   *
   * @param path its parent must be safe: sticky, or only root can change names there
   * @param owner the user who must own it
   * @throws IOException if it is not a directory of this user, or a mount point
   */
  public static StrangersDirectory open(Path path, long owner) throws IOException {
    Path parent = path.resolveSibling("").toAbsolutePath();
    int above = opened(LIBC.open(Posix.terminated(parent.toString()), Posix.O_PATH), parent);
    int found = -1;
    boolean isComplete = false;
    try {
      byte[] name = Posix.terminated(String.valueOf(path.getFileName()));
      int flags = Posix.O_PATH | Posix.O_NOFOLLOW | Posix.O_CLOEXEC;
      found = opened(LIBC.openat(above, name, flags), path);
      String mount = mountOf(found);
      if (!mount.equals(mountOf(above))) {
        throw new IOException(path + ": a mount point");
      }
      Attributes attributes = attributes(found, path);
      if (attributes.type() != FileType.DIRECTORY
          || Integer.toUnsignedLong(attributes.uid()) != owner) {
        throw new IOException(path + ": not a directory of user " + owner);
      }
      StrangersDirectory directory = new StrangersDirectory(path, owner, found, mount);
      isComplete = true;
      return directory;
    } finally {
      LIBC.close(above);
      if (found >= 0 && !isComplete) {
        LIBC.close(found);
      }
    }
  }

  private static int opened(int descriptor, Path what) throws IOException {
    if (descriptor < 0) {
      throw failure(what);
    }
    return descriptor;
  }

  private static IOException failure(Path what) {
    Errno errno = Posix.errno();
    return errno == Errno.ENOENT
        ? new NoSuchFileException(what.toString())
        : new IOException(what + ": " + errno);
  }

  private static Attributes attributes(int descriptor, Path what) throws IOException {
    Pointer statx = Memory.allocateDirect(Posix.RUNTIME, Posix.STATX_SIZE);
    int flags = Posix.AT_EMPTY_PATH | Posix.AT_SYMLINK_NOFOLLOW;
    if (LIBC.statx(descriptor, EMPTY_PATH, flags, Posix.STATX_BASIC_STATS, statx) != 0) {
      throw failure(what);
    }
    return Posix.attributes(statx);
  }

  /** The id of the mount that contains the file; sends no request to the file system. */
  private static String mountOf(int descriptor) throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/fdinfo/" + descriptor), UTF_8)) {
      if (line.startsWith("mnt_id:")) {
        return line;
      }
    }
    throw new IOException("/proc/self/fdinfo has no mnt_id");
  }

  private static Path link(int descriptor) {
    return Path.of("/proc/self/fd/" + descriptor);
  }

  /**
   * The names in it, unordered.
   *
   * @param most the limit; further names are not read
   */
  public List<String> names(int most) throws IOException {
    List<String> names = new ArrayList<>();
    try (DirectoryStream<Path> files = Files.newDirectoryStream(link(descriptor))) {
      for (Path file : files) {
        if (names.size() >= most) {
          break;
        }
        names.add(String.valueOf(file.getFileName()));
      }
    } catch (DirectoryIteratorException e) {
      throw e.getCause();
    }
    return names;
  }

  /** An O_PATH descriptor of a name; of the link itself if it is a symbolic link. */
  private int find(String name) throws IOException {
    Path what = path.resolve(name);
    if (name.isEmpty() || name.equals("..") || name.indexOf('/') >= 0) {
      throw new IOException(what + ": not a name");
    }
    int flags = Posix.O_PATH | Posix.O_NOFOLLOW | Posix.O_CLOEXEC;
    int found = opened(LIBC.openat(descriptor, Posix.terminated(name), flags), what);
    boolean isHere = false;
    try {
      isHere = mountOf(found).equals(mount);
    } finally {
      if (!isHere) {
        LIBC.close(found);
      }
    }
    if (!isHere) {
      throw new IOException(what + ": a mount point");
    }
    return found;
  }

  /** Whether the user has such a file, of any kind except a symbolic link. */
  public boolean has(String name) throws IOException {
    int found;
    try {
      found = find(name);
    } catch (IOException e) {
      return false;
    }
    try {
      Attributes attributes = attributes(found, path.resolve(name));
      return attributes.type() != FileType.SYMBOLIC_LINK
          && Integer.toUnsignedLong(attributes.uid()) == owner;
    } finally {
      LIBC.close(found);
    }
  }

  /**
   * Opens a regular file for reading; the caller closes it.
   *
   * @throws NoSuchFileException if there is no such name
   * @throws IOException if it is another kind of file, a file of another user, or a file with
   *     several names
   */
  public OpenFile open(String name) throws IOException {
    Path what = path.resolve(name);
    int found = find(name);
    try {
      Attributes attributes = attributes(found, what);
      if (attributes.type() != FileType.REGULAR) {
        throw new IOException(what + ": not a regular file");
      }
      if (Integer.toUnsignedLong(attributes.uid()) != owner || attributes.linkCount() != 1) {
        throw new IOException(what + ": not a file of user " + owner + " alone");
      }
      // Without waiting for a lease of the user, fcntl(2).
      int flags = Posix.O_NONBLOCK | Posix.O_CLOEXEC;
      byte[] again = Posix.terminated(link(found).toString());
      return new OpenFile(opened(LIBC.open(again, flags), what), what, attributes);
    } finally {
      LIBC.close(found);
    }
  }

  /** An open regular file. Used by one thread. */
  public static final class OpenFile implements AutoCloseable {
    private final int descriptor;
    private final Path path;
    private final Attributes attributes;

    private OpenFile(int descriptor, Path path, Attributes attributes) {
      this.descriptor = descriptor;
      this.path = path;
      this.attributes = attributes;
    }

    /** The size in bytes when it was opened. */
    public long size() {
      return attributes.size();
    }

    /** Reads at most this many bytes at an offset; fewer at the end of the file. */
    public byte[] read(long offset, int most) throws IOException {
      ByteBuffer buffer = ByteBuffer.allocateDirect(most);
      try {
        PassedFile.read(descriptor, FileName.of(path.toString()), offset, buffer);
      } catch (FsException e) {
        throw new IOException(path + ": " + e.errno(), e);
      }
      byte[] bytes = new byte[buffer.flip().remaining()];
      buffer.get(bytes);
      return bytes;
    }

    /** Whether any process, including this one, holds a lock of fcntl(2) on it. */
    public boolean isLocked() throws IOException {
      // Opens the file that was checked, even if its name was replaced.
      try (FileChannel channel = FileChannel.open(link(descriptor), StandardOpenOption.WRITE);
          FileLock lock = channel.tryLock()) {
        return lock == null;
      } catch (OverlappingFileLockException heldInThisProcess) {
        return true;
      }
    }

    @Override
    public void close() {
      LIBC.close(descriptor);
    }
  }

  @Override
  public void close() {
    LIBC.close(descriptor);
  }
}
