package io.pmfs.fuse;

import io.pmfs.metadata.FileName;
import io.pmfs.tier.FsException;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import jnr.ffi.Pointer;

/**
 * What the kernel is told unasked (enum fuse_notify_code). A notice is an answer to request 0 whose
 * error is a code. Safe for use by many threads.
 *
 * <p>DEADLOCK: the kernel takes locks for a notice (a file's pages, a directory) that it holds
 * while it waits for an answer. So none is sent by a thread that answers requests, nor with a lock
 * held that such a thread may want.
 */
final class KernelNotices {
  private static final int VECTOR_SIZE = 16;

  private final KernelChannel channel;

  KernelNotices(KernelChannel channel) {
    this.channel = channel;
  }

  /**
   * Has the kernel send again all requests that were taken and not answered, with bit 63 of their
   * unique numbers set (FUSE_NOTIFY_RESEND, since 6.9).
   *
   * @throws FsException EINVAL if it does not know how to
   */
  boolean resend() throws FsException {
    return send(KernelProtocol.NOTIFY_RESEND, message(0));
  }

  /**
   * Has the kernel forget attributes and all cached data of an inode.
   *
   * @return false if it knows no such inode
   */
  boolean invalidateInode(long inode) throws FsException {
    ByteBuffer message = message(KernelProtocol.NOTIFY_INODE_SIZE);
    message.putLong(BODY, inode);
    message.putLong(BODY + 8, 0); // from the first byte
    message.putLong(BODY + 16, 0); // to the last
    return send(KernelProtocol.NOTIFY_INVAL_INODE, message);
  }

  /**
   * Has the kernel forget what a name in a directory stands for, or that it stands for nothing.
   *
   * @return false if it knows no such directory, or nothing of that name there
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

  /** Room for a struct iovec, a header and so many bytes, all zero. */
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
