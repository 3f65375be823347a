package io.pmfs.fuse;

import io.pmfs.fuse.protocol.KernelChannel;
import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.system.Posix;
import io.pmfs.posix.FsException;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import jnr.ffi.Pointer;

/**
 * Unsolicited messages to the kernel (enum fuse_notify_code). A notice is an answer to request 0
 * whose error field holds a code. Thread-safe.
 */
final class KernelNotices {
  private static final int VECTOR_SIZE = 16;

  private final KernelChannel channel;

  KernelNotices(KernelChannel channel) {
    this.channel = channel;
  }

  /**
   * Makes the kernel resend all requests that were taken and not answered, with bit 63 of their
   * unique numbers set (FUSE_NOTIFY_RESEND, since 6.9).
   *
   * @throws FsException EINVAL if the kernel does not support this
   */
  void resend() throws FsException {
    // A struct iovec and the header that it points to.
    ByteBuffer message =
        ByteBuffer.allocateDirect(VECTOR_SIZE + KernelProtocol.OUT_HEADER_SIZE)
            .order(ByteOrder.nativeOrder());
    message.putInt(VECTOR_SIZE + KernelProtocol.OUT_LENGTH, KernelProtocol.OUT_HEADER_SIZE);
    message.putInt(VECTOR_SIZE + KernelProtocol.OUT_ERROR, KernelProtocol.NOTIFY_RESEND);
    long address = Pointer.wrap(Posix.RUNTIME, message).address();
    message.putLong(0, address + VECTOR_SIZE);
    message.putLong(8, KernelProtocol.OUT_HEADER_SIZE);
    try {
      channel.send(address, 1);
    } finally {
      Reference.reachabilityFence(message);
    }
  }
}
