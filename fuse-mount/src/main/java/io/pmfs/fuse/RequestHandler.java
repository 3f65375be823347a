package io.pmfs.fuse;

import io.pmfs.fuse.protocol.KernelReply;
import io.pmfs.fuse.protocol.KernelRequest;
import io.pmfs.fuse.protocol.RequestListener;
import io.pmfs.posix.FsException;

/**
 * Answers the requests of one session. Safe for use by many workers, each with its own request and
 * reply.
 */
interface RequestHandler {
  /** Answers one request, also if our code fails. */
  void handle(KernelRequest request, KernelReply reply) throws FsException;

  /** What this session and the kernel agreed on. */
  Negotiation negotiation();

  /** Calls the listener for every request from now on. */
  void listen(RequestListener listener);

  /** The size of each worker's buffer for requests, in bytes. */
  int requestBytes();
}
