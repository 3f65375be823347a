package io.pmfs.fuse;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.fuse.protocol.AnswerBuffers;
import io.pmfs.fuse.protocol.AskedRequest;
import io.pmfs.fuse.protocol.KernelChannel;
import io.pmfs.fuse.protocol.KernelReply;
import io.pmfs.fuse.protocol.KernelRequest;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.fuse.protocol.RequestLatencies;
import io.pmfs.fuse.system.Posix;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.nio.ByteBuffer;
import java.util.function.BooleanSupplier;
import java.util.function.LongPredicate;
import jnr.ffi.Pointer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Fetches and answers requests until the session ends. Every request that expects an answer gets
 * one, every failure becomes an errno, and a failed request does not end the worker. If a request
 * cannot be answered, or no worker can fetch any, its readers would wait forever: then another
 * process must serve the session.
 */
final class KernelWorker implements Runnable {
  private static final Logger log = LoggerFactory.getLogger(KernelWorker.class);

  private static final int SESSION_ENDED = -1;
  private static final int FAILED = -2;
  private static final int FETCH_ATTEMPTS = 10;
  private static final long PAUSE_MS = 100;

  /** An answer that fails with an unchecked exception is tried once more. */
  private static final int ANSWER_ATTEMPTS = 2;

  private static final ByteBuffer HEARTBEAT = UTF_8.encode(Bridge.HEARTBEAT);

  private final KernelChannel channel;
  private final RequestHandler handler;
  private final RequestLatencies latencies;
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
   * @param latencies records how long each request took
   * @param gate shared by all workers of the session
   * @param ended runs when the session has ended
   * @param failed runs if a request cannot be answered, or none can be fetched
   * @param buffers lends the worker's memory until it ends
   */
  KernelWorker(
      KernelChannel channel,
      RequestHandler handler,
      RequestLatencies latencies,
      RequestGate gate,
      Runnable ended,
      Runnable failed,
      AnswerBuffers buffers) {
    this.channel = channel;
    this.gate = gate;
    this.handler = handler;
    this.latencies = latencies;
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

  /** The request without an answer, if there is one that waits so long. Thread-safe. */
  @Nullable AskedRequest waiting(long leastNanos, long now) {
    return reply.isAwaited() ? request.waiting(leastNanos, now) : null;
  }

  /**
   * Ends the request if it waits so long and its program was killed. Thread-safe.
   *
   * @param isKilled whether the thread with an id was killed
   */
  void endIfKilled(long leastNanos, long now, LongPredicate isKilled) throws FsException {
    long number = reply.interruptible(); // Not repeated: if it still holds, all between is its own.
    AskedRequest asked = number == 0 ? null : request.waiting(leastNanos, now);
    Opcode opcode = asked == null ? null : request.opcode();
    if (asked != null
        && opcode != null
        && handler.mayEndEarly(opcode)
        && isKilled.test(asked.pid())) {
      reply.interrupt(number);
    }
  }

  /**
   * Whether it works on a request that leaves nothing behind: in vain, once the session has ended.
   * Thread-safe.
   */
  boolean worksInVain() {
    boolean isWorking = request.isWaiting(0, System.nanoTime());
    Opcode opcode = isWorking ? request.opcode() : null;
    return opcode != null && handler.mayEndEarly(opcode) && !reply.isSent();
  }

  @Override
  public void run() {
    runWhile(() -> true);
  }

  /** Answers the first request, INIT; twice if the kernel supports a later protocol. */
  void negotiate() {
    runWhile(() -> !handler.negotiation().isNegotiated());
  }

  /** Answers requests while a condition holds; checked between requests. */
  void runWhile(BooleanSupplier goOn) {
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

  /** Answers a request and times it; catches every failure. */
  private void answer() {
    Opcode opcode = request.opcode();
    long begin = RequestLatencies.NEVER;
    reply.begin(request.unique());
    try {
      begin = isHeartbeat(request) ? RequestLatencies.NEVER : latencies.begin();
      request.begin(begin);
      handle(opcode);
    } catch (FsException e) {
      fail(e.errno());
      if (e.errno() != Errno.ENOENT && e.errno() != Errno.ENOSYS) {
        log.debug("{} of inode {}: {}", opcode, request.inode(), e.getMessage());
      }
    } catch (Throwable e) {
      fail(Errno.EIO);
      log.error("{} ({}) of inode {}", opcode, request.opcodeNumber(), request.inode(), e);
    } finally {
      request.end();
    }
    if (opcode != null) {
      latencies.end(opcode, begin, request, reply);
    }
  }

  private void handle(@Nullable Opcode opcode) throws FsException {
    if (opcode == null) {
      throw new FsException(Errno.ENOSYS, "opcode " + request.opcodeNumber());
    }
    if (!request.isWhole() && opcode.isAnswered()) {
      throw KernelRequest.truncated();
    }
    handler.answer(opcode, request, reply);
    if (!reply.isAnswered()) {
      throw new IllegalStateException("a request was left unanswered");
    }
  }

  /** Whether the request is the daemon's own check that its mount answers. */
  static boolean isHeartbeat(KernelRequest request) {
    return request.isLookup(HEARTBEAT);
  }

  /** Answers with an errno, unless an answer was sent before the failure. */
  private void fail(Errno errno) {
    for (int attempt = 1; !reply.isAnswered(); attempt++) {
      try {
        reply.fail(errno);
      } catch (FsException | RuntimeException | Error e) {
        log.error("cannot answer {} of inode {}", request.opcode(), request.inode(), e);
        if (e instanceof FsException || attempt == ANSWER_ATTEMPTS) {
          failed.run();
          return;
        }
      }
    }
  }
}
