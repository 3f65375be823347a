package io.pmfs.fuse;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.fuse.protocol.KernelReply;
import io.pmfs.fuse.protocol.KernelRequest;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.fuse.protocol.RequestLatencies;
import io.pmfs.fuse.protocol.RequestListener;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What all handlers of requests share: every request that expects an answer gets one, every failure
 * becomes an errno, and every request is timed. Safe for use by many threads.
 */
final class Answering {
  private static final Logger log = LoggerFactory.getLogger(Answering.class);
  private static final ByteBuffer HEARTBEAT = UTF_8.encode(Bridge.HEARTBEAT);

  private final RequestLatencies latencies;
  private final Dispatch dispatch;
  private volatile @Nullable RequestListener listener;

  /** Answers a request or throws. */
  interface Dispatch {
    void dispatch(Opcode opcode, KernelRequest request, KernelReply reply) throws FsException;
  }

  /**
   * Answers by a handler.
   *
   * @param latencies records how long each request took
   */
  Answering(RequestLatencies latencies, Dispatch dispatch) {
    this.latencies = latencies;
    this.dispatch = dispatch;
  }

  /** Calls the listener for every request from now on. */
  void listen(RequestListener told) {
    this.listener = told;
  }

  /** Answers one request, and handles every failure in this one place. */
  void handle(KernelRequest request, KernelReply reply) throws FsException {
    Opcode opcode = request.opcode();
    long begin = isHeartbeat(request) ? RequestLatencies.NEVER : latencies.begin();
    request.begin(begin);
    try {
      answer(request, reply);
    } finally {
      request.end();
      if (opcode != null) {
        long nanos = latencies.end(opcode, begin);
        RequestListener told = listener;
        if (told != null
            && opcode.isAnswered()
            && (nanos >= told.leastNanos() || (nanos >= 0 && told.wants(opcode, reply.errno())))) {
          told.answered(request.answered(opcode, reply, begin, nanos));
        }
      }
    }
  }

  /** Whether the daemon itself asks whether its mount answers. */
  static boolean isHeartbeat(KernelRequest request) {
    return request.isLookup(HEARTBEAT);
  }

  private void answer(KernelRequest request, KernelReply reply) throws FsException {
    reply.begin(request.unique());
    try {
      dispatch(request, reply);
      if (!reply.isAnswered()) {
        throw new IllegalStateException("a request was left unanswered");
      }
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT && e.errno() != Errno.ENOSYS) {
        log.debug("{} of inode {}: {}", request.opcode(), request.inode(), e.getMessage());
      }
      failUnlessAnswered(reply, e.errno());
    } catch (Throwable e) {
      log.error(
          "{} ({}) of inode {}", request.opcode(), request.opcodeNumber(), request.inode(), e);
      failUnlessAnswered(reply, Errno.EIO);
    }
  }

  private void dispatch(KernelRequest request, KernelReply reply) throws FsException {
    Opcode opcode = request.opcode();
    if (opcode == null) {
      throw new FsException(Errno.ENOSYS, "opcode " + request.opcodeNumber());
    }
    if (!request.isWhole() && opcode.isAnswered()) {
      throw KernelRequest.truncated();
    }
    dispatch.dispatch(opcode, request, reply);
  }

  private static void failUnlessAnswered(KernelReply reply, Errno errno) throws FsException {
    if (!reply.isAnswered()) {
      reply.fail(errno);
    }
  }
}
