package io.pmfs.fuse;

import io.pmfs.fuse.protocol.KernelReply;
import io.pmfs.fuse.protocol.KernelRequest;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.posix.FsException;

/**
 * Answers the requests of one session. Safe for use by many workers, each with its own request and
 * reply.
 */
interface RequestHandler {
  /** Answers one request, which was received whole, or throws: then nothing was answered yet. */
  void answer(Opcode opcode, KernelRequest request, KernelReply reply) throws FsException;

  /** What this session and the kernel agreed on. */
  Negotiation negotiation();

  /** The size of each worker's buffer for requests, in bytes. */
  int requestBytes();
}
