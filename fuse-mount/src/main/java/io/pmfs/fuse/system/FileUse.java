package io.pmfs.fuse.system;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.nio.file.Path;
import jnr.ffi.Memory;
import jnr.ffi.Pointer;

/** Whether files owned by this process's user are in use, as the kernel reports. */
public final class FileUse {
  // fcntl.h and linux/fs.h; the same on x86-64 and AArch64.
  private static final int F_SETSIG = 10;
  private static final int F_SETLEASE = 1024;
  private static final int F_WRLCK = 1;
  private static final int F_UNLCK = 2;
  private static final long FS_IOC_GETFLAGS = 0x80086601L;
  private static final long FS_IOC_SETFLAGS = 0x40086602L;
  private static final int FS_NOATIME_FL = 0x80;

  /** Ignored by default; SIGIO, the default of F_SETSIG, would end this process. */
  private static final int SIGURG = 23;

  private static final LibC LIBC = LibC.INSTANCE;

  private FileUse() {}

  /**
   * Whether any process, including this one, has a file open for reading or writing, mapped, or in
   * a message in flight: then the kernel refuses a write lease (F_SETLEASE in fcntl(2)).
   * Descriptors opened with O_PATH do not count.
   *
   * @throws FsException if there is no such file, or its file system does not support leases
   */
  public static boolean isOpen(Path file) throws FsException {
    try (PassedFile own = PassedFile.open(file)) {
      int descriptor = own.descriptor();
      LIBC.fcntl(descriptor, F_SETSIG, SIGURG);
      if (LIBC.fcntl(descriptor, F_SETLEASE, F_WRLCK) == 0) {
        LIBC.fcntl(descriptor, F_SETLEASE, F_UNLCK);
        return false;
      }
      Errno errno = Posix.errno();
      if (errno == Errno.EAGAIN) {
        return true;
      }
      throw new FsException(errno, "F_SETLEASE " + file);
    }
  }

  /**
   * Stops recording access times of files created in a directory from now on; does nothing if the
   * file system does not support that.
   */
  public static void recordNoReads(Path directory) throws FsException {
    try (PassedFile own = PassedFile.open(directory)) {
      Pointer flags = Memory.allocateDirect(Posix.RUNTIME, Long.BYTES, true);
      if (LIBC.ioctl(own.descriptor(), FS_IOC_GETFLAGS, flags.address()) == 0) {
        flags.putInt(0, flags.getInt(0) | FS_NOATIME_FL);
        LIBC.ioctl(own.descriptor(), FS_IOC_SETFLAGS, flags.address());
      }
    }
  }
}
