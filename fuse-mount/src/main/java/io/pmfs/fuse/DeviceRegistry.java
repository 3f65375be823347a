package io.pmfs.fuse;

import io.pmfs.fuse.system.LibC;
import io.pmfs.fuse.system.Posix;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import jnr.ffi.Memory;
import jnr.ffi.Pointer;

/** Backing files of one session, through ioctl on /dev/fuse. */
final class DeviceRegistry implements BackingFiles.Registry {
  // _IOW(229, 1, struct fuse_backing_map) and _IOW(229, 2, uint32_t) of linux/fuse.h.
  static final long BACKING_OPEN = 0x4010e501L;
  static final long BACKING_CLOSE = 0x4004e502L;
  static final int BACKING_MAP_SIZE = 16;

  private static final byte[] EMPTY_PATH = {0};
  private static final LibC LIBC = LibC.INSTANCE;

  private final int device;

  DeviceRegistry(int device) {
    this.device = device;
  }

  @Override
  public int register(Path path, long size) throws FsException {
    // If a FIFO has replaced a copy, opening it must not block this thread.
    int flags = Posix.O_CLOEXEC | Posix.O_NOFOLLOW | Posix.O_NONBLOCK;
    int file = LIBC.openat(Posix.AT_FDCWD, Posix.terminated(path.toString()), flags);
    if (file < 0) {
      return BackingFiles.NONE;
    }
    try {
      return register(file, size);
    } finally {
      LIBC.close(file);
    }
  }

  @Override
  public int register(int file, long size) throws FsException {
    if (!isRegular(file, EMPTY_PATH, Posix.AT_EMPTY_PATH, size)) {
      return BackingFiles.NONE;
    }
    ByteBuffer map = ByteBuffer.allocateDirect(BACKING_MAP_SIZE).order(ByteOrder.nativeOrder());
    map.putInt(0, file);
    int id = LIBC.ioctl(device, BACKING_OPEN, Pointer.wrap(Posix.RUNTIME, map).address());
    if (id <= 0) {
      throw new FsException(Posix.errno(), "a backing file of %,d bytes".formatted(size));
    }
    return id;
  }

  @Override
  public boolean isWhole(Path path, long size) {
    byte[] name = Posix.terminated(path.toString());
    return isRegular(Posix.AT_FDCWD, name, Posix.AT_SYMLINK_NOFOLLOW, size);
  }

  /** The kernel reads the file as it is, so a truncated copy must not be registered. */
  private static boolean isRegular(int directory, byte[] path, int flags, long size) {
    Pointer statx = Memory.allocateDirect(Posix.RUNTIME, Posix.STATX_SIZE);
    if (LIBC.statx(directory, path, flags, Posix.STATX_BASIC_STATS, statx) != 0) {
      return false;
    }
    Attributes attributes = Posix.attributes(statx);
    return attributes.type() == FileType.REGULAR && attributes.size() == size;
  }

  @Override
  public void unregister(int id) {
    ByteBuffer number = ByteBuffer.allocateDirect(Integer.BYTES).order(ByteOrder.nativeOrder());
    number.putInt(0, id);
    LIBC.ioctl(device, BACKING_CLOSE, Pointer.wrap(Posix.RUNTIME, number).address());
  }
}
