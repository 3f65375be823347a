package io.pmfs.fuse.protocol;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A worker's view of the request in its buffer. Every access is bounded by the number of bytes
 * received.
 *
 * <p>Other threads may inspect the request while the worker waits for its answer. INVARIANT: the
 * worker resets {@code beginNanos} before it refills the buffer. Between these two steps it passes
 * the {@link io.pmfs.fuse.RequestGate}, whose counter is the fence. A thread that reads the same
 * {@code beginNanos} before and after has read a single request.
 */
public final class KernelRequest {
  private static final Logger log = LoggerFactory.getLogger(KernelRequest.class);

  private final ByteBuffer in;

  /** When the request in progress began; NEVER if there is none. */
  private final AtomicLong beginNanos = new AtomicLong(RequestLatencies.NEVER);

  /**
   * A view of a buffer that is refilled for each request; its limit is the number of bytes
   * received.
   */
  public KernelRequest(ByteBuffer in) {
    this.in = in;
  }

  /** Whether the header is complete; otherwise no answer is possible. */
  public boolean hasHeader() {
    return in.limit() >= KernelProtocol.IN_HEADER_SIZE;
  }

  /** Whether the request was received completely. */
  public boolean isWhole() {
    return in.getInt(KernelProtocol.IN_LENGTH) == in.limit();
  }

  public @Nullable Opcode opcode() {
    return Opcode.of(opcodeNumber());
  }

  public int opcodeNumber() {
    return in.getInt(KernelProtocol.IN_OPCODE);
  }

  public long unique() {
    return in.getLong(KernelProtocol.IN_UNIQUE);
  }

  /** The request's number, without the resend flag. */
  public long number() {
    return unique() & ~KernelProtocol.RESENT;
  }

  public long inode() {
    return in.getLong(KernelProtocol.IN_NODE);
  }

  public long uid() {
    return Integer.toUnsignedLong(in.getInt(KernelProtocol.IN_UID));
  }

  public long gid() {
    return Integer.toUnsignedLong(in.getInt(KernelProtocol.IN_GID));
  }

  public long pid() {
    return Integer.toUnsignedLong(in.getInt(KernelProtocol.IN_PID));
  }

  /** Marks the request as in progress; {@link RequestLatencies#NEVER} if it is not timed. */
  public void begin(long nanos) {
    beginNanos.setRelease(nanos);
  }

  public void end() {
    beginNanos.setRelease(RequestLatencies.NEVER);
  }

  /** Whether a request has been in progress for at least this long. Thread-safe. */
  public boolean isWaiting(long leastNanos, long now) {
    long begin = beginNanos.getAcquire();
    return begin != RequestLatencies.NEVER && now - begin >= leastNanos;
  }

  /**
   * The request, if at the time {@code now} it has been in progress for at least {@code
   * leastNanos}; else null. Thread-safe.
   */
  public @Nullable AskedRequest waiting(long leastNanos, long now) {
    long begin = beginNanos.getAcquire();
    if (begin == RequestLatencies.NEVER || now - begin < leastNanos) {
      return null;
    }
    try {
      Opcode opcode = opcode();
      AskedRequest asked = opcode == null || !opcode.isAnswered() ? null : asked(opcode, begin);
      VarHandle.acquireFence();
      return begin == beginNanos.getPlain() ? asked : null;
    } catch (IndexOutOfBoundsException e) {
      return null; // replaced by another request meanwhile
    }
  }

  /** The request's parameters, as far as they were received. */
  private AskedRequest asked(Opcode opcode, long begin) {
    FileName name = null;
    long offset = -1;
    long size = -1;
    try {
      switch (opcode) {
        case LOOKUP -> name = nameAt(KernelProtocol.IN_HEADER_SIZE);
        case GETXATTR -> {
          name = nameAt(KernelProtocol.XATTR_NAME);
          size = Integer.toUnsignedLong(intAt(KernelProtocol.XATTR_SIZE));
        }
        case LISTXATTR -> size = Integer.toUnsignedLong(intAt(KernelProtocol.XATTR_SIZE));
        case READ, READDIR, READDIRPLUS -> {
          offset = longAt(KernelProtocol.READ_OFFSET);
          size = Integer.toUnsignedLong(intAt(KernelProtocol.READ_SIZE));
        }
        case LSEEK -> offset = longAt(KernelProtocol.LSEEK_OFFSET);
        case WRITE -> {
          offset = longAt(ChangeProtocol.WRITE_OFFSET);
          size = Integer.toUnsignedLong(intAt(ChangeProtocol.WRITE_SIZE));
        }
        case CREATE -> name = nameAt(ChangeProtocol.CREATE_NAME);
        case MKNOD -> name = nameAt(ChangeProtocol.MKNOD_NAME);
        case MKDIR -> name = nameAt(ChangeProtocol.MKDIR_NAME);
        case LINK -> name = nameAt(ChangeProtocol.LINK_NAME);
        case RENAME -> name = nameAt(ChangeProtocol.RENAME_NAMES);
        case RENAME2 -> name = nameAt(ChangeProtocol.RENAME2_NAMES);
        case SETXATTR -> name = nameAt(ChangeProtocol.SETXATTR_NAME);
        case SYMLINK, UNLINK, RMDIR, REMOVEXATTR -> name = nameAt(KernelProtocol.IN_HEADER_SIZE);
        default -> {}
      }
    } catch (FsException e) {
      log.trace("{}: {}", opcode, e.getMessage()); // the caller gets this error
    }
    return new AskedRequest(
        opcode.word(), uid(), gid(), pid(), inode(), null, name, offset, size, begin);
  }

  /** The request and its answer. */
  public AnsweredRequest answered(Opcode opcode, KernelReply reply, long begin, long nanos) {
    int errno = reply.errno();
    long bytes = -1;
    if (errno == 0) {
      switch (opcode) {
        // An answer without an inode makes the kernel cache that there is no such name.
        case LOOKUP ->
            errno = reply.body().getLong(KernelReply.BODY) == 0 ? Errno.ENOENT.number() : 0;
        case READ, READDIR, READDIRPLUS, READLINK -> bytes = reply.bodySize();
        default -> {}
      }
    }
    return new AnsweredRequest(asked(opcode, begin), errno, bytes, nanos);
  }

  public int intAt(int offset) throws FsException {
    if (offset + Integer.BYTES > in.limit()) {
      throw truncated();
    }
    return in.getInt(offset);
  }

  public long longAt(int offset) throws FsException {
    if (offset + Long.BYTES > in.limit()) {
      throw truncated();
    }
    return in.getLong(offset);
  }

  /** Whether it looks up this name, in any directory. */
  public boolean isLookup(ByteBuffer name) {
    return opcode() == Opcode.LOOKUP
        && in.limit() == KernelProtocol.IN_HEADER_SIZE + name.limit() + 1
        && in.slice(KernelProtocol.IN_HEADER_SIZE, name.limit()).equals(name);
  }

  /** The NUL-terminated name at an offset. */
  public FileName nameAt(int offset) throws FsException {
    int end = offset;
    while (end < in.limit() && in.get(end) != 0) {
      end++;
    }
    if (end >= in.limit() || end == offset) {
      throw truncated();
    }
    byte[] name = new byte[end - offset];
    in.get(offset, name);
    return FileName.of(name);
  }

  /** A view of the bytes at an offset, valid until the request is answered. */
  public ByteBuffer bytesAt(int offset, int size) throws FsException {
    if (size < 0 || size > in.limit() - offset) {
      throw truncated();
    }
    return in.slice(offset, size).order(in.order());
  }

  public static FsException truncated() {
    return new FsException(Errno.EINVAL, "truncated request");
  }
}
