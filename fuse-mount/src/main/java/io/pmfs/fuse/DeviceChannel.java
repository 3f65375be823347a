package io.pmfs.fuse;

import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import jnr.ffi.Pointer;

/** Requests through read and writev on /dev/fuse. */
final class DeviceChannel implements KernelChannel {
  private static final LibC LIBC = LibC.INSTANCE;

  /** The tier's page becomes the mount's, instead of being in memory twice; splice(2). */
  private static final int SPLICE_F_MOVE = 1;

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
      if (!isWorthRepeating()) {
        return false;
      }
    }
    return true;
  }

  @Override
  public boolean sendPiped(int pipe, int size) throws FsException {
    while (LIBC.splice(pipe, null, device, null, size, SPLICE_F_MOVE) < 0) {
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
      // ENOENT: whoever asked was interrupted; ENODEV: the session has ended.
      case ENOENT, ENODEV -> false;
      default -> throw new FsException(errno, "/dev/fuse");
    };
  }

  /**
   * Has the kernel send again all requests that were taken and not answered, with bit 63 of their
   * unique numbers set (FUSE_NOTIFY_RESEND, since 6.9).
   */
  void askToResend() throws FsException {
    ByteBuffer message = ByteBuffer.allocateDirect(32).order(ByteOrder.nativeOrder());
    message.putInt(16, KernelProtocol.OUT_HEADER_SIZE);
    message.putInt(20, KernelProtocol.NOTIFY_RESEND);
    long address = Pointer.wrap(Posix.RUNTIME, message).address();
    message.putLong(0, address + 16);
    message.putLong(8, KernelProtocol.OUT_HEADER_SIZE);
    send(address, 1);
  }
}
