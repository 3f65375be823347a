package io.pmfs.fuse;

import io.pmfs.fuse.protocol.AnswerBuffers;
import io.pmfs.fuse.protocol.KernelChannel;
import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.protocol.KernelReply;
import io.pmfs.fuse.protocol.KernelRequest;
import io.pmfs.fuse.system.Posix;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.util.function.BooleanSupplier;
import jnr.ffi.Pointer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Fetches and answers requests until the session ends. A failure of one request does not end a
 * worker. A request that cannot be answered would leave its reader waiting for ever, and so would a
 * session from which no worker can fetch: then another process must serve the session.
 */
final class KernelWorker implements Runnable {
  private static final Logger log = LoggerFactory.getLogger(KernelWorker.class);

  private static final int SESSION_ENDED = -1;
  private static final int FAILED = -2;
  private static final int FETCH_ATTEMPTS = 10;
  private static final long PAUSE_MS = 100;

  private final KernelChannel channel;
  private final RequestHandler handler;
  private final RequestGate gate;
  private final Runnable ended;
  private final Runnable failed;
  private final AnswerBuffers buffers;
  private final ByteBuffer in;
  private final long inAddress;
  private final KernelRequest request;
  private final KernelReply reply;

  /**
   * A worker of a session.
   *
   * @param gate shared by all workers of the session
   * @param ended runs when the session has ended
   * @param failed runs if a request cannot be answered, or none can be fetched
   */
  KernelWorker(
      KernelChannel channel,
      RequestHandler handler,
      RequestGate gate,
      Runnable ended,
      Runnable failed) {
    this(channel, handler, gate, ended, failed, new AnswerBuffers(KernelProtocol.MAX_READ_BYTES));
  }

  /** The same with memory that it gives back when it ends. */
  KernelWorker(
      KernelChannel channel,
      RequestHandler handler,
      RequestGate gate,
      Runnable ended,
      Runnable failed,
      AnswerBuffers buffers) {
    this.channel = channel;
    this.gate = gate;
    this.handler = handler;
    this.buffers = buffers;
    this.in = buffers.take(handler.requestBytes());
    this.inAddress = Pointer.wrap(Posix.RUNTIME, in).address();
    this.request = new KernelRequest(in);
    this.ended = ended;
    this.failed = failed;
    this.reply = new KernelReply(channel, buffers);
  }

  /** The request that this worker handles. */
  KernelRequest request() {
    return request;
  }

  @Override
  public void run() {
    work(() -> true);
  }

  /** The same for as long as a condition holds, which is looked at between requests. */
  void runWhile(BooleanSupplier goOn) {
    work(goOn);
  }

  /** Answers the first request, INIT; twice if the kernel supports a later protocol. */
  void negotiate() {
    work(() -> !handler.negotiation().isNegotiated());
  }

  private void work(BooleanSupplier goOn) {
    try (reply) {
      serveWhile(goOn);
    } finally {
      buffers.give(in);
    }
  }

  private void serveWhile(BooleanSupplier goOn) {
    int failures = 0;
    try {
      while (goOn.getAsBoolean() && gate.listen()) {
        int size = receive();
        if (size == SESSION_ENDED) {
          ended.run();
          return;
        }
        if (size >= 0) {
          failures = 0;
          serve(size);
        } else if (++failures < FETCH_ATTEMPTS) {
          Thread.sleep(PAUSE_MS);
        } else {
          failed.run();
          return;
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** The size of a request, or one of the negative codes below. */
  private int receive() {
    try {
      int size = channel.receive(inAddress, in.capacity());
      return size < 0 ? SESSION_ENDED : size;
    } catch (FsException e) {
      log.error("cannot fetch requests: {}", e.getMessage());
    } catch (RuntimeException | Error e) {
      log.error("cannot fetch requests", e);
    } finally {
      gate.heard();
    }
    return FAILED;
  }

  private void serve(int size) throws InterruptedException {
    in.clear().limit(size);
    gate.enter();
    try {
      if (request.hasHeader()) {
        answer();
      } else {
        log.error("ignoring a request of {} bytes, which has no complete header", size);
      }
    } finally {
      gate.exit();
    }
  }

  private void answer() {
    reply.begin(request.unique());
    try {
      handler.handle(request, reply);
      return;
    } catch (FsException e) {
      log.error(
          "cannot answer {} of inode {}: {}", request.opcode(), request.inode(), e.getMessage());
    } catch (RuntimeException | Error e) {
      log.error("{} of inode {}", request.opcode(), request.inode(), e);
      if (isFailed()) {
        return;
      }
    }
    failed.run();
  }

  /** Whether the request could at least be answered with an error. */
  private boolean isFailed() {
    try {
      if (!reply.isAnswered()) {
        reply.fail(Errno.EIO);
      }
      return true;
    } catch (FsException | RuntimeException | Error e) {
      log.error("cannot answer {} of inode {}", request.opcode(), request.inode(), e);
      return false;
    }
  }
}
