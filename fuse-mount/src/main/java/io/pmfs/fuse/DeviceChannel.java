package io.pmfs.fuse;

import io.pmfs.fuse.protocol.KernelChannel;
import io.pmfs.fuse.system.LibC;
import io.pmfs.fuse.system.Posix;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import jnr.ffi.Pointer;

/**
 * Requests through read and writev on /dev/fuse. The kernel accepts an answer only on the
 * descriptor from which the request was read.
 */
final class DeviceChannel implements KernelChannel, AutoCloseable {
  private static final LibC LIBC = LibC.INSTANCE;

  /** FUSE_DEV_IOC_CLONE of linux/fuse.h, _IOR(229, 0, uint32_t). */
  static final long CLONE = 0x8004e500L;

  private final int device;

  DeviceChannel(int device) {
    this.device = device;
  }

  /**
   * Another descriptor of the same session. When it is closed, or this process ends, unanswered
   * requests read from it fail with ECONNABORTED. The session continues as long as any of its
   * descriptors is open.
   */
  static DeviceChannel cloneOf(int session) throws FsException {
    int device = LIBC.open(Posix.terminated("/dev/fuse"), Posix.O_RDWR | Posix.O_CLOEXEC);
    if (device < 0) {
      throw new FsException(Posix.errno(), "/dev/fuse");
    }
    ByteBuffer number = ByteBuffer.allocateDirect(Integer.BYTES).order(ByteOrder.nativeOrder());
    number.putInt(0, session);
    if (LIBC.ioctl(device, CLONE, Pointer.wrap(Posix.RUNTIME, number).address()) != 0) {
      FsException refused = new FsException(Posix.errno(), "a second descriptor of the session");
      LIBC.close(device);
      throw refused;
    }
    return new DeviceChannel(device);
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
      if (!isWorthRepeating()) {
        return false;
      }
    }
    return true;
  }

  @Override
  public boolean sendPiped(int pipe, int size) throws FsException {
    while (LIBC.splice(pipe, null, device, null, size, 0) < 0) {
      if (!isWorthRepeating()) {
        return false;
      }
    }
    return true;
  }

  private static boolean isWorthRepeating() throws FsException {
    Errno errno = Posix.errno();
    return switch (errno) {
      case EINTR, EAGAIN -> true;
      // ENOENT: the caller was interrupted; ENODEV: the session has ended.
      case ENOENT, ENODEV -> false;
      default -> throw new FsException(errno, "/dev/fuse");
    };
  }

  @Override
  public void close() {
    LIBC.close(device);
  }
}
