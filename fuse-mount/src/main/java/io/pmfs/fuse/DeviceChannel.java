package io.pmfs.fuse;

import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;

/** Requests through read and writev on /dev/fuse. */
final class DeviceChannel implements KernelChannel {
  private static final LibC LIBC = LibC.INSTANCE;

  private final int device;

  DeviceChannel(int device) {
    this.device = device;
  }

  @Override
  public int receive(long buffer, int size) throws FsException {
    while (true) {
      long count = LIBC.read(device, buffer, size);
      if (count >= 0) {
        return Math.toIntExact(count);
      }
      Errno errno = Posix.errno();
      switch (errno) {
        // ENOENT: the request was interrupted before it was read.
        case EINTR, EAGAIN, ENOENT -> {}
        case ENODEV -> {
          return -1;
        }
        default -> throw new FsException(errno, "/dev/fuse");
      }
    }
  }

  @Override
  public boolean send(long vectors, int count) throws FsException {
    while (LIBC.writev(device, vectors, count) < 0) {
      Errno errno = Posix.errno();
      switch (errno) {
        case EINTR, EAGAIN -> {}
        // ENOENT: whoever asked was interrupted; ENODEV: the session has ended.
        case ENOENT, ENODEV -> {
          return false;
        }
        default -> throw new FsException(errno, "/dev/fuse");
      }
    }
    return true;
  }
}
