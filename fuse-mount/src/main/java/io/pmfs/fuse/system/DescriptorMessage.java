package io.pmfs.fuse.system;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import jnr.ffi.Memory;
import jnr.ffi.Pointer;

/** A descriptor that another process sends over a Unix socket, with one byte of data (unix(7)). */
public final class DescriptorMessage {
  // sys/socket.h; the same on x86-64 and AArch64.
  static final int AF_UNIX = 1;
  static final int SOCK_STREAM = 1;
  static final int SOCK_CLOEXEC = 0x80000;
  static final int SOL_SOCKET = 1;
  static final int SCM_RIGHTS = 1;
  static final int MSG_CMSG_CLOEXEC = 0x40000000;

  // struct msghdr, struct iovec and struct cmsghdr of 64-bit systems.
  static final int MESSAGE_VECTORS = 16;
  static final int MESSAGE_VECTOR_COUNT = 24;
  static final int MESSAGE_CONTROL = 32;
  static final int MESSAGE_CONTROL_LENGTH = 40;
  static final int MESSAGE_SIZE = 56;
  static final int VECTOR_LENGTH = 8;
  static final int VECTOR_SIZE = 16;
  static final int CONTROL_LEVEL = 8;
  static final int CONTROL_TYPE = 12;
  static final int CONTROL_DESCRIPTOR = 16;

  /** Room for one descriptor: CMSG_SPACE(sizeof(int)). */
  static final int CONTROL_SPACE = 24;

  private static final int NONE = -1;
  private static final LibC LIBC = LibC.INSTANCE;

  private DescriptorMessage() {}

  /** A pair of connected sockets that child processes do not inherit. */
  public static int[] sockets() throws FsException {
    int[] pair = new int[2];
    if (LIBC.socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
      throw new FsException(Posix.errno(), "socketpair");
    }
    return pair;
  }

  /** Waits for the descriptor; -1 if the other end closes without sending one. */
  public static int receive(int socket) throws FsException {
    int control = MESSAGE_SIZE + VECTOR_SIZE;
    int data = control + CONTROL_SPACE;
    Pointer message = Memory.allocateDirect(Posix.RUNTIME, data + 1, true);
    message.putAddress(MESSAGE_VECTORS, message.address() + MESSAGE_SIZE);
    message.putLongLong(MESSAGE_VECTOR_COUNT, 1);
    message.putAddress(MESSAGE_SIZE, message.address() + data);
    message.putLongLong(MESSAGE_SIZE + VECTOR_LENGTH, 1);
    message.putAddress(MESSAGE_CONTROL, message.address() + control);
    message.putLongLong(MESSAGE_CONTROL_LENGTH, CONTROL_SPACE);
    long count;
    while ((count = LIBC.recvmsg(socket, message, MSG_CMSG_CLOEXEC)) < 0) {
      Errno errno = Posix.errno();
      if (errno != Errno.EINTR) {
        throw new FsException(errno, "recvmsg");
      }
    }
    boolean sent =
        count > 0
            && message.getLongLong(MESSAGE_CONTROL_LENGTH) > CONTROL_DESCRIPTOR
            && message.getInt(control + CONTROL_LEVEL) == SOL_SOCKET
            && message.getInt(control + CONTROL_TYPE) == SCM_RIGHTS;
    return sent ? message.getInt(control + CONTROL_DESCRIPTOR) : NONE;
  }
}
