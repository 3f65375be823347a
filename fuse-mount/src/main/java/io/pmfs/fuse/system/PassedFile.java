package io.pmfs.fuse.system;

import io.pmfs.metadata.FileIdentity;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.FsException;
import io.pmfs.source.LentFile;
import io.pmfs.source.SourceStatus;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import jnr.ffi.Memory;
import jnr.ffi.Pointer;
import org.jspecify.annotations.Nullable;

/** An open file that one process passes to another, by its descriptor. */
public final class PassedFile implements LentFile {
  /** Stands for no descriptor. */
  public static final int NONE = -1;

  private static final FileName NAME = FileName.of("a passed file");
  private static final byte[] EMPTY_PATH = {0};

  // fcntl(2)
  private static final int F_GETFL = 3;
  private static final int F_DUPFD_CLOEXEC = 1030;

  private static final int O_ACCMODE = 3;
  private static final int O_WRONLY = 1;
  private static final int O_NOATIME = 0x40000;

  private static final int SYNC_FILE_RANGE_WRITE = 2;

  /** Of struct statfs, linux/magic.h. */
  private static final long FUSE_SUPER_MAGIC = 0x65735546;

  private static final LibC LIBC = LibC.INSTANCE;

  private final int descriptor;
  private boolean closed; // GUARDED_BY(this)

  PassedFile(int descriptor) {
    this.descriptor = descriptor;
  }

  /**
   * Opens a file of this user for reading, to pass it on. Reads do not change its access time,
   * which others would see.
   */
  public static PassedFile open(Path path) throws FsException {
    int flags = Posix.O_NOFOLLOW | Posix.O_CLOEXEC | O_NOATIME;
    int opened = LIBC.open(Posix.terminated(path.toString()), flags);
    if (opened < 0) {
      throw new FsException(Posix.errno(), path.toString());
    }
    return new PassedFile(opened);
  }

  /** Good until it is closed. */
  @Override
  public int descriptor() {
    return descriptor;
  }

  /** Another descriptor of an open file; null if the process may have no more. */
  static @Nullable PassedFile duplicate(int descriptor) {
    int copy = LIBC.fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
    return copy < 0 ? null : new PassedFile(copy);
  }

  /** Whether whoever opened it was allowed to read it: it is open for reading now. */
  public boolean isReadable() throws FsException {
    int flags = flags();
    int access = flags & O_ACCMODE;
    return (flags & Posix.O_PATH) == 0 && access != O_WRONLY && access != O_ACCMODE;
  }

  /** Whether it is open for writing. */
  public boolean isWritable() throws FsException {
    return (flags() & O_ACCMODE) != 0;
  }

  private int flags() throws FsException {
    int flags = LIBC.fcntl(descriptor, F_GETFL, 0);
    if (flags < 0) {
      throw Posix.failure(NAME);
    }
    return flags;
  }

  /**
   * The device of its file system. Sends no request to that file system, which may never answer.
   */
  public long device() throws FsException {
    Pointer statx = Memory.allocateDirect(Posix.RUNTIME, Posix.STATX_SIZE);
    int flags = Posix.AT_EMPTY_PATH | Posix.AT_STATX_DONT_SYNC;
    if (LIBC.statx(descriptor, EMPTY_PATH, flags, 0, statx) != 0) {
      throw Posix.failure(NAME);
    }
    return Posix.device(statx);
  }

  /** Whether its file system is FUSE, whose daemon chooses inode numbers and change times. */
  public boolean isServedByProgram() throws FsException {
    return isServedByProgram(descriptor, NAME);
  }

  static boolean isServedByProgram(int file, FileName name) throws FsException {
    Pointer statfs = Memory.allocateDirect(Posix.RUNTIME, Posix.STATVFS_SIZE);
    if (Posix.retried(() -> LIBC.fstatfs(file, statfs)) != 0) {
      throw Posix.failure(name);
    }
    return statfs.getLongLong(0) == FUSE_SUPER_MAGIC;
  }

  /** The file's status now; its identity has the number of the device. */
  public SourceStatus status() throws FsException {
    Pointer statx = Memory.allocateDirect(Posix.RUNTIME, Posix.STATX_SIZE);
    if (LIBC.statx(descriptor, EMPTY_PATH, Posix.AT_EMPTY_PATH, Posix.STATX_BASIC_STATS, statx)
        != 0) {
      throw Posix.failure(NAME);
    }
    return new SourceStatus(
        new FileIdentity(Posix.device(statx), Posix.inode(statx)), Posix.attributes(statx));
  }

  /**
   * The device of the file system at a path, in this process's mount namespace; sends no request to
   * a server.
   *
   * @throws FsException if there is no such path
   */
  public static long deviceAt(Path path) throws FsException {
    Pointer statx = Memory.allocateDirect(Posix.RUNTIME, Posix.STATX_SIZE);
    byte[] name = Posix.terminated(path.toString());
    if (LIBC.statx(Posix.AT_FDCWD, name, Posix.AT_STATX_DONT_SYNC, 0, statx) != 0) {
      throw new FsException(Posix.errno(), path.toString());
    }
    return Posix.device(statx);
  }

  /**
   * Starts writing back pages that programs changed through memory mappings. Further changes to
   * these pages then update the file's times; before, they would not.
   */
  public void beginWriteBack() {
    beginWriteBack(descriptor);
  }

  static void beginWriteBack(int file) {
    LIBC.sync_file_range(file, 0, 0, SYNC_FILE_RANGE_WRITE);
  }

  /** Reads into direct memory until it is full or the file ends; returns the byte count. */
  public int read(long offset, ByteBuffer destination) throws FsException {
    return read(descriptor, NAME, offset, destination);
  }

  static int read(int file, FileName name, long offset, ByteBuffer destination) throws FsException {
    // The address is that of the buffer's position.
    long address = Pointer.wrap(Posix.RUNTIME, destination).address();
    int first = destination.position();
    while (destination.hasRemaining()) {
      int at = destination.position();
      long count =
          Posix.retried(
              () ->
                  LIBC.pread(
                      file, address + at - first, destination.remaining(), offset + at - first));
      if (count < 0) {
        throw Posix.failure(name);
      }
      if (count == 0) {
        break;
      }
      destination.position(at + Math.toIntExact(count));
    }
    return destination.position() - first;
  }

  @Override
  public void closeDescriptor() {
    close();
  }

  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      LIBC.close(descriptor);
    }
  }
}
