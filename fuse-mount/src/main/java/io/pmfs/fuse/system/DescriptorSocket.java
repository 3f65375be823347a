package io.pmfs.fuse.system;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import jnr.ffi.Memory;
import jnr.ffi.Pointer;
import org.jspecify.annotations.Nullable;

/**
 * One end of a connection over a Unix socket with message boundaries. A message may carry one open
 * file (unix(7)). One thread receives and finally closes the socket; others may send and {@link
 * #shutDown}.
 */
public final class DescriptorSocket implements AutoCloseable {
  /** The longest message. */
  public static final int MESSAGE_BYTES = 32 << 10;

  // sys/socket.h; the same on x86-64 and AArch64.
  private static final int SOCK_SEQPACKET = 5;
  private static final int MSG_CTRUNC = 8;
  private static final int MSG_TRUNC = 0x20;
  private static final int MSG_DONTWAIT = 0x40;
  private static final int MSG_NOSIGNAL = 0x4000;
  private static final int SO_SNDBUF = 7;
  private static final int SO_PEERCRED = 17;
  private static final int SO_RCVTIMEO = 20;
  private static final int SO_SNDTIMEO = 21;
  private static final int SHUT_RDWR = 2;

  /** struct sockaddr_un: the family, and a path with its NUL. */
  private static final int PATH_BYTES = 108;

  private static final int MESSAGE_FLAGS = 48;

  /** CMSG_LEN(sizeof(int)): the kernel closes further files of a message. */
  private static final int CONTROL_LENGTH = DescriptorMessage.CONTROL_DESCRIPTOR + Integer.BYTES;

  private static final int DATA =
      DescriptorMessage.MESSAGE_SIZE
          + DescriptorMessage.VECTOR_SIZE
          + DescriptorMessage.CONTROL_SPACE;

  private static final LibC LIBC = LibC.INSTANCE;

  private final int socket;
  private final Pointer incoming = Memory.allocateDirect(Posix.RUNTIME, DATA + MESSAGE_BYTES, true);
  private boolean closed; // GUARDED_BY(this)

  private DescriptorSocket(int socket) {
    this.socket = socket;
  }

  /**
   * A message.
   *
   * @param file received with it, closed by the receiver; null if none
   */
  public record Message(ByteBuffer bytes, @Nullable PassedFile file) {}

  /** A socket that accepts connections; see {@link #accept}. Its path must not exist. */
  public static DescriptorSocket listen(Path path, int waiting) throws FsException {
    DescriptorSocket listening = unconnected();
    try {
      byte[] address = address(path);
      check(LIBC.bind(listening.socket, address, address.length), path);
      check(LIBC.listen(listening.socket, waiting), path);
      return listening;
    } catch (FsException e) {
      listening.close();
      throw e;
    }
  }

  /**
   * Connects to a listening socket.
   *
   * @param limit how long to wait for room in the other end's queue, here and in each {@link #send}
   */
  public static DescriptorSocket connect(Path path, Duration limit) throws FsException {
    DescriptorSocket connecting = unconnected();
    try {
      connecting.limit(SO_SNDTIMEO, limit);
      byte[] address = address(path);
      check(LIBC.connect(connecting.socket, address, address.length), path);
      return connecting;
    } catch (FsException e) {
      connecting.close();
      throw e;
    }
  }

  /** Limits each {@link #receive}, which then fails with EAGAIN. */
  public void limitReceiving(Duration limit) throws FsException {
    limit(SO_RCVTIMEO, limit);
  }

  private void limit(int option, Duration limit) throws FsException {
    int size = 2 * Long.BYTES; // struct timeval
    Pointer time = Memory.allocateDirect(Posix.RUNTIME, size, true);
    time.putLongLong(0, limit.toSeconds());
    time.putLongLong(Long.BYTES, limit.toNanosPart() / 1000);
    if (LIBC.setsockopt(socket, DescriptorMessage.SOL_SOCKET, option, time, size) < 0) {
      throw new FsException(Posix.errno(), "setsockopt");
    }
  }

  private static DescriptorSocket unconnected() throws FsException {
    int made =
        LIBC.socket(DescriptorMessage.AF_UNIX, SOCK_SEQPACKET | DescriptorMessage.SOCK_CLOEXEC, 0);
    if (made < 0) {
      throw new FsException(Posix.errno(), "socket");
    }
    return new DescriptorSocket(made);
  }

  private static byte[] address(Path path) throws FsException {
    byte[] name = Posix.terminated(path.toString());
    if (name.length > PATH_BYTES) {
      throw new FsException(Errno.ENAMETOOLONG, path.toString());
    }
    byte[] address = new byte[Short.BYTES + name.length];
    address[0] = DescriptorMessage.AF_UNIX; // low byte first, on both architectures
    System.arraycopy(name, 0, address, Short.BYTES, name.length);
    return address;
  }

  private static void check(int result, Path path) throws FsException {
    if (result < 0) {
      throw new FsException(Posix.errno(), path.toString());
    }
  }

  /**
   * Waits for the next connection.
   *
   * @param queueBytes the kernel's memory for messages that the other end has not received
   */
  public DescriptorSocket accept(int queueBytes) throws FsException {
    int accepted = LIBC.accept4(socket, null, null, DescriptorMessage.SOCK_CLOEXEC);
    if (accepted < 0) {
      throw new FsException(Posix.errno(), "accept");
    }
    Pointer size = Memory.allocateDirect(Posix.RUNTIME, Integer.BYTES, true);
    size.putInt(0, queueBytes);
    LIBC.setsockopt(accepted, DescriptorMessage.SOL_SOCKET, SO_SNDBUF, size, Integer.BYTES);
    return new DescriptorSocket(accepted);
  }

  /** For tests, which send malformed messages. */
  int descriptor() {
    return socket;
  }

  /** The user id of the connected process, from the kernel. */
  public int peerUser() throws FsException {
    int[] credentials = new int[3]; // struct ucred: process, user, group
    int[] size = {credentials.length * Integer.BYTES};
    if (LIBC.getsockopt(socket, DescriptorMessage.SOL_SOCKET, SO_PEERCRED, credentials, size) < 0) {
      throw new FsException(Posix.errno(), "SO_PEERCRED");
    }
    return credentials[1];
  }

  /** Waits for the next message; null if the other end has closed or this end was shut down. */
  public @Nullable Message receive() throws FsException {
    Pointer message = incoming;
    prepare(message, MESSAGE_BYTES, CONTROL_LENGTH);
    long count;
    while ((count = LIBC.recvmsg(socket, message, DescriptorMessage.MSG_CMSG_CLOEXEC)) < 0) {
      Errno errno = Posix.errno();
      if (errno == Errno.ECONNRESET) {
        return null;
      }
      if (errno != Errno.EINTR) {
        throw new FsException(errno, "recvmsg");
      }
    }
    PassedFile file = received(message);
    int flags = message.getInt(MESSAGE_FLAGS);
    if (count == 0 || (flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
      if (file != null) {
        file.close();
      }
      if (count == 0) {
        return null;
      }
      throw new FsException(Errno.EPROTO, "a message that is too long or has several files");
    }
    byte[] bytes = new byte[Math.toIntExact(count)];
    message.get(DATA, bytes, 0, bytes.length);
    return new Message(ByteBuffer.wrap(bytes), file);
  }

  private static @Nullable PassedFile received(Pointer message) {
    int control = DescriptorMessage.MESSAGE_SIZE + DescriptorMessage.VECTOR_SIZE;
    boolean isSent =
        message.getLongLong(DescriptorMessage.MESSAGE_CONTROL_LENGTH) >= CONTROL_LENGTH
            && message.getInt(control + DescriptorMessage.CONTROL_LEVEL)
                == DescriptorMessage.SOL_SOCKET
            && message.getInt(control + DescriptorMessage.CONTROL_TYPE)
                == DescriptorMessage.SCM_RIGHTS;
    return isSent
        ? new PassedFile(message.getInt(control + DescriptorMessage.CONTROL_DESCRIPTOR))
        : null;
  }

  /** Sends a message; waits for room in the queue as long as the socket allows. */
  public void send(byte[] bytes, int descriptor) throws FsException {
    send(bytes, descriptor, 0);
  }

  /**
   * Sends a message if there is room for it in the queue.
   *
   * @param file sent with it, still owned by the caller; null for none
   * @throws FsException EAGAIN if there is no room
   */
  public void offer(byte[] bytes, @Nullable PassedFile file) throws FsException {
    send(bytes, file == null ? PassedFile.NONE : file.descriptor(), MSG_DONTWAIT);
  }

  private void send(byte[] bytes, int descriptor, int flags) throws FsException {
    Pointer message = Memory.allocateDirect(Posix.RUNTIME, DATA + bytes.length, true);
    boolean hasFile = descriptor >= 0;
    prepare(message, bytes.length, hasFile ? DescriptorMessage.CONTROL_SPACE : 0);
    if (hasFile) {
      int control = DescriptorMessage.MESSAGE_SIZE + DescriptorMessage.VECTOR_SIZE;
      message.putLongLong(control, CONTROL_LENGTH);
      message.putInt(control + DescriptorMessage.CONTROL_LEVEL, DescriptorMessage.SOL_SOCKET);
      message.putInt(control + DescriptorMessage.CONTROL_TYPE, DescriptorMessage.SCM_RIGHTS);
      message.putInt(control + DescriptorMessage.CONTROL_DESCRIPTOR, descriptor);
    }
    message.put(DATA, bytes, 0, bytes.length);
    synchronized (this) {
      if (closed) {
        throw new FsException(Errno.ENOTCONN, "the connection is closed");
      }
      while (LIBC.sendmsg(socket, message, flags | MSG_NOSIGNAL) < 0) {
        Errno errno = Posix.errno();
        if (errno != Errno.EINTR) {
          throw new FsException(errno, "sendmsg");
        }
      }
    }
  }

  private static void prepare(Pointer message, int dataBytes, int controlBytes) {
    message.setMemory(0, DATA, (byte) 0);
    long start = message.address();
    message.putAddress(DescriptorMessage.MESSAGE_VECTORS, start + DescriptorMessage.MESSAGE_SIZE);
    message.putLongLong(DescriptorMessage.MESSAGE_VECTOR_COUNT, 1);
    message.putAddress(DescriptorMessage.MESSAGE_SIZE, start + DATA);
    message.putLongLong(
        DescriptorMessage.MESSAGE_SIZE + DescriptorMessage.VECTOR_LENGTH, dataBytes);
    if (controlBytes > 0) {
      message.putAddress(
          DescriptorMessage.MESSAGE_CONTROL,
          start + DescriptorMessage.MESSAGE_SIZE + DescriptorMessage.VECTOR_SIZE);
      message.putLongLong(DescriptorMessage.MESSAGE_CONTROL_LENGTH, controlBytes);
    }
  }

  /** Ends the connection for both ends; wakes the thread that receives or accepts. */
  public synchronized void shutDown() {
    if (!closed) {
      LIBC.shutdown(socket, SHUT_RDWR);
    }
  }

  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      LIBC.close(socket);
    }
  }
}
