package io.pmfs.fuse;

import io.pmfs.fuse.protocol.KernelChannel;
import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.system.Posix;
import io.pmfs.metadata.FileName;
import io.pmfs.tier.FsException;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import jnr.ffi.Pointer;

/**
 * Messages to the kernel that it did not ask for (enum fuse_notify_code). A notice is an answer to
 * request 0 whose error field holds a code. Safe for use by many threads.
 *
 * <p>DEADLOCK: to process a notice, the kernel takes locks (of a file's pages, of a directory) that
 * it holds while it waits for an answer. So a notice must not be sent by a thread that answers
 * requests, or with a lock held that such a thread may need.
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
  boolean resend() throws FsException {
    return send(KernelProtocol.NOTIFY_RESEND, message(0));
  }

  /**
   * Makes the kernel forget attributes and all cached data of an inode.
   *
   * @return false if the kernel does not know the inode
   */
  boolean invalidateInode(long inode) throws FsException {
    ByteBuffer message = message(KernelProtocol.NOTIFY_INODE_SIZE);
    message.putLong(BODY, inode);
    message.putLong(BODY + 8, 0); // from the first byte
    message.putLong(BODY + 16, 0); // to the last
    return send(KernelProtocol.NOTIFY_INVAL_INODE, message);
  }

  /**
   * Makes the kernel forget the inode of a name in a directory, or that the name does not exist.
   *
   * @return false if the kernel does not know the directory, or has nothing cached for that name
   */
  boolean invalidateEntry(long directory, FileName name) throws FsException {
    ByteBuffer message = message(KernelProtocol.NOTIFY_ENTRY_SIZE + name.size() + 1);
    message.putLong(BODY, directory);
    message.putInt(BODY + 8, name.size());
    message.putInt(BODY + 12, 0);
    message.put(BODY + KernelProtocol.NOTIFY_ENTRY_SIZE, name.bytes());
    return send(KernelProtocol.NOTIFY_INVAL_ENTRY, message);
  }

  private static final int BODY = VECTOR_SIZE + KernelProtocol.OUT_HEADER_SIZE;

  /** A zeroed buffer with room for a struct iovec, a header and {@code bodySize} bytes. */
  private static ByteBuffer message(int bodySize) {
    return ByteBuffer.allocateDirect(BODY + bodySize).order(ByteOrder.nativeOrder());
  }

  private boolean send(int code, ByteBuffer message) throws FsException {
    int size = message.capacity() - VECTOR_SIZE;
    message.putInt(VECTOR_SIZE + KernelProtocol.OUT_LENGTH, size);
    message.putInt(VECTOR_SIZE + KernelProtocol.OUT_ERROR, code);
    message.putLong(VECTOR_SIZE + KernelProtocol.OUT_UNIQUE, 0);
    long address = Pointer.wrap(Posix.RUNTIME, message).address();
    message.putLong(0, address + VECTOR_SIZE);
    message.putLong(8, size);
    try {
      return channel.send(address, 1);
    } finally {
      Reference.reachabilityFence(message);
    }
  }
}
