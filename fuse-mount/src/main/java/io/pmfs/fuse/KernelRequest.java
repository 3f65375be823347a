package io.pmfs.fuse;

import io.pmfs.metadata.FileName;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;

/** A worker's view of the request in its buffer. Every access is bounded by what was received. */
final class KernelRequest {
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
