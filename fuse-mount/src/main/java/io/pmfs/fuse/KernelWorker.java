package io.pmfs.fuse;

import io.pmfs.tier.FsException;
import java.nio.ByteBuffer;
import java.util.function.BooleanSupplier;
import jnr.ffi.Pointer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Fetches a request, answers it, and so on until the session ends. A request that cannot be
 * answered would leave its reader waiting for ever: then the session is ended instead.
 */
final class KernelWorker implements Runnable {
  private static final Logger log = LoggerFactory.getLogger(KernelWorker.class);

  private final KernelChannel channel;
  private final KernelOperations operations;
  private final RequestGate gate;
  private final Runnable endSession;
  private final ByteBuffer in = KernelOperations.requestBuffer();
  private final long inAddress = Pointer.wrap(Posix.RUNTIME, in).address();
  private final KernelRequest request = new KernelRequest(in);
  private final KernelReply reply;

  /**
   * A worker of a session.
   *
   * @param gate that all workers of the session share
   * @param endSession ends it whatever is in progress; called if an answer cannot be given
   */
  KernelWorker(
      KernelChannel channel, KernelOperations operations, RequestGate gate, Runnable endSession) {
    this.channel = channel;
    this.gate = gate;
    this.operations = operations;
    this.endSession = endSession;
    this.reply = new KernelReply(channel);
  }

  /** What it works on. */
  KernelRequest request() {
    return request;
  }

  @Override
  public void run() {
    try (reply) {
      work(() -> true);
    }
  }

  /** Answers what comes before anything else: INIT, twice if the kernel is of a later protocol. */
  void negotiate() {
    work(() -> !operations.isNegotiated());
  }

  private void work(BooleanSupplier goOn) {
    try {
      while (goOn.getAsBoolean() && !gate.isClosing()) {
        int size = channel.receive(inAddress, in.capacity());
        if (size < 0) {
          return;
        }
        in.clear().limit(size);
        gate.enter();
        try {
          if (request.hasHeader()) {
            answer(request, reply);
          } else {
            log.error("a request of {} bytes has no header and is passed over", size);
          }
        } finally {
          gate.exit();
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (FsException e) {
      log.error("a worker stops: {}", e.getMessage());
    } catch (Throwable e) {
      log.error("a worker stops", e);
    }
  }

  private void answer(KernelRequest request, KernelReply reply) {
    try {
      operations.handle(request, reply);
    } catch (FsException e) {
      log.error(
          "{} of inode {} cannot be answered, so the session ends: {}",
          request.opcode(),
          request.node(),
          e.getMessage());
      endSession.run();
    }
  }
}
