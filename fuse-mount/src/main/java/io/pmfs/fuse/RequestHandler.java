package io.pmfs.fuse;

import io.pmfs.fuse.protocol.KernelReply;
import io.pmfs.fuse.protocol.KernelRequest;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.posix.FsException;

/**
 * Answers the requests of one session. Thread-safe for workers with separate requests and replies.
 */
interface RequestHandler {
  /** Answers one complete request, or throws before anything was answered. */
  void answer(Opcode opcode, KernelRequest request, KernelReply reply) throws FsException;

  /** The protocol features agreed on with the kernel. */
  Negotiation negotiation();

  /**
   * Whether the kernel may be told that a request ended while it is still being answered, unless
   * {@link KernelReply#keep} was called.
   */
  default boolean mayEndEarly(Opcode opcode) {
    return false;
  }

  /** The size of each worker's buffer for requests, in bytes. */
  int requestBytes();
}
