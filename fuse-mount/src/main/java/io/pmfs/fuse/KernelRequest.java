package io.pmfs.fuse;

import io.pmfs.metadata.FileName;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A worker's view of the request in its buffer. Every access is bounded by what was received.
 *
 * <p>Other threads may look at it while the worker waits for an answer to it. INVARIANT: the buffer
 * is not filled again before its begin is taken back. The worker passes the {@link RequestGate}
 * between these two, whose counter is the fence; so whoever finds the same begin before and after
 * has read one request.
 */
final class KernelRequest {
  private static final Logger log = LoggerFactory.getLogger(KernelRequest.class);

  private final ByteBuffer in;

  /** When the request that waits for its answer was begun; NEVER if none does. */
  private final AtomicLong beginNanos = new AtomicLong(RequestLatencies.NEVER);

  /**
   * A view of a buffer that is filled again for each request, its limit being the number of bytes
   * received.
   */
  KernelRequest(ByteBuffer in) {
    this.in = in;
  }

  /** Whether there is a whole header, without which nothing can be answered. */
  boolean hasHeader() {
    return in.limit() >= KernelProtocol.IN_HEADER_SIZE;
  }

  /** Whether there are as many bytes as the header says. */
  boolean isWhole() {
    return in.getInt(KernelProtocol.IN_LENGTH) == in.limit();
  }

  @Nullable Opcode opcode() {
    return Opcode.of(opcodeNumber());
  }

  int opcodeNumber() {
    return in.getInt(KernelProtocol.IN_OPCODE);
  }

  long unique() {
    return in.getLong(KernelProtocol.IN_UNIQUE);
  }

  long node() {
    return in.getLong(KernelProtocol.IN_NODE);
  }

  long uid() {
    return Integer.toUnsignedLong(in.getInt(KernelProtocol.IN_UID));
  }

  long gid() {
    return Integer.toUnsignedLong(in.getInt(KernelProtocol.IN_GID));
  }

  long pid() {
    return Integer.toUnsignedLong(in.getInt(KernelProtocol.IN_PID));
  }

  /** From now on it waits for its answer; {@link RequestLatencies#NEVER} if it is not timed. */
  void begin(long nanos) {
    beginNanos.setRelease(nanos);
  }

  /** It waits no more. */
  void end() {
    beginNanos.setRelease(RequestLatencies.NEVER);
  }

  /**
   * What is asked for, if that has waited so long for its answer at a time; else null. For any
   * thread, at any time.
   */
  @Nullable AskedRequest waiting(long leastNanos, long now) {
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
      return null; // it is another one by now
    }
  }

  /** What is asked for, as far as the request is whole. */
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
        default -> {}
      }
    } catch (FsException e) {
      log.trace("{}: {}", opcode, e.getMessage()); // answered as such; there is no more to tell
    }
    return new AskedRequest(
        opcode.word(), uid(), gid(), pid(), node(), null, name, offset, size, begin);
  }

  /** What was asked, and how it was answered. */
  AnsweredRequest answered(Opcode opcode, KernelReply reply, long begin, long nanos) {
    int errno = reply.errno();
    long bytes = -1;
    if (errno == 0) {
      switch (opcode) {
        // An answer without an inode says that there is no such name, for the kernel to keep.
        case LOOKUP ->
            errno = reply.body().getLong(KernelReply.BODY) == 0 ? Errno.ENOENT.number() : 0;
        case READ, READDIR, READDIRPLUS, READLINK -> bytes = reply.bodySize();
        default -> {}
      }
    }
    return new AnsweredRequest(asked(opcode, begin), errno, bytes, nanos);
  }

  int intAt(int offset) throws FsException {
    if (offset + Integer.BYTES > in.limit()) {
      throw truncated();
    }
    return in.getInt(offset);
  }

  long longAt(int offset) throws FsException {
    if (offset + Long.BYTES > in.limit()) {
      throw truncated();
    }
    return in.getLong(offset);
  }

  /** Whether it asks for that name, in whatever directory. */
  boolean isLookup(ByteBuffer name) {
    return opcode() == Opcode.LOOKUP
        && in.limit() == KernelProtocol.IN_HEADER_SIZE + name.limit() + 1
        && in.slice(KernelProtocol.IN_HEADER_SIZE, name.limit()).equals(name);
  }

  /** The NUL-terminated name at an offset. */
  FileName nameAt(int offset) throws FsException {
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

  static FsException truncated() {
    return new FsException(Errno.EINVAL, "a request that is cut short");
  }
}
