package io.pmfs.fuse;

import io.pmfs.metadata.FileName;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A worker's view of the request in its buffer. Every access is bounded by what was received. */
final class KernelRequest {
  private static final Logger log = LoggerFactory.getLogger(KernelRequest.class);

  private final ByteBuffer in;

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

  /** What was asked, and how it was answered. */
  AnsweredRequest answered(Opcode opcode, KernelReply reply, long begin, long nanos) {
    int errno = reply.errno();
    FileName name = null;
    long offset = -1;
    long size = -1;
    long bytes = -1;
    try {
      switch (opcode) {
        case LOOKUP -> {
          name = nameAt(KernelProtocol.IN_HEADER_SIZE);
          // An answer without an inode says that there is no such name, for the kernel to keep.
          if (errno == 0 && reply.body().getLong(KernelReply.BODY) == 0) {
            errno = Errno.ENOENT.number();
          }
        }
        case GETXATTR -> {
          name = nameAt(KernelProtocol.XATTR_NAME);
          size = Integer.toUnsignedLong(intAt(KernelProtocol.XATTR_SIZE));
        }
        case LISTXATTR -> size = Integer.toUnsignedLong(intAt(KernelProtocol.XATTR_SIZE));
        case READ, READDIR, READDIRPLUS -> {
          offset = longAt(KernelProtocol.READ_OFFSET);
          size = Integer.toUnsignedLong(intAt(KernelProtocol.READ_SIZE));
          bytes = reply.bodySize();
        }
        case LSEEK -> offset = longAt(KernelProtocol.LSEEK_OFFSET);
        case READLINK -> bytes = reply.bodySize();
        default -> {}
      }
    } catch (FsException e) {
      log.trace("{}: {}", opcode, e.getMessage()); // answered as such; there is no more to tell
    }
    return new AnsweredRequest(
        opcode.word(),
        uid(),
        gid(),
        pid(),
        node(),
        null,
        name,
        offset,
        size,
        errno,
        errno == 0 ? bytes : -1,
        begin,
        nanos);
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
