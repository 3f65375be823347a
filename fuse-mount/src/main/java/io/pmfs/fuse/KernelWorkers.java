package io.pmfs.fuse;

import io.pmfs.tier.FsException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import jnr.ffi.Pointer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The threads that fetch requests and answer them, each with buffers of its own, until the session
 * ends.
 */
final class KernelWorkers {
  private static final Logger log = LoggerFactory.getLogger(KernelWorkers.class);

  private static final long POLL_MS = 2;

  private final KernelChannel channel;
  private final KernelOperations operations;
  private final int count;
  private final Runnable atEnd;
  private final AtomicInteger running = new AtomicInteger();
  private final AtomicInteger inProgress = new AtomicInteger();
  private final CountDownLatch never = new CountDownLatch(1);
  private volatile boolean frozen;

  /**
   * Workers that are not started yet.
   *
   * @param atEnd what the last of them does
   */
  KernelWorkers(KernelChannel channel, KernelOperations operations, int count, Runnable atEnd) {
    this.channel = channel;
    this.operations = operations;
    this.count = count;
    this.atEnd = atEnd;
  }

  void start() {
    running.set(count);
    for (int i = 1; i <= count; i++) {
      Thread worker = new Thread(this::serve, "fuse-" + i);
      worker.setDaemon(true);
      worker.start();
    }
  }

  boolean hasIdle() {
    return inProgress.get() < running.get();
  }

  /**
   * See {@link Bridge#freeze}. Requests that were fetched and not begun stay unanswered: the kernel
   * sends them to the next process.
   */
  boolean freeze(Duration timeout) throws InterruptedException {
    frozen = true;
    long deadline = System.nanoTime() + timeout.toNanos();
    while (inProgress.get() > 0) {
      if (System.nanoTime() > deadline) {
        return false;
      }
      Thread.sleep(POLL_MS);
    }
    return true;
  }

  private void serve() {
    try {
      ByteBuffer in = KernelOperations.requestBuffer();
      long address = Pointer.wrap(Posix.RUNTIME, in).address();
      KernelRequest request = new KernelRequest(in);
      KernelReply reply = new KernelReply(channel);
      while (true) {
        int size = channel.receive(address, in.capacity());
        if (size < 0) {
          return;
        }
        in.clear().limit(size);
        inProgress.incrementAndGet();
        try {
          answer(request, reply);
        } finally {
          inProgress.decrementAndGet();
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (FsException e) {
      log.error("a worker stops: {}", e.getMessage());
    } catch (Throwable e) {
      log.error("a worker stops", e);
    } finally {
      if (running.decrementAndGet() == 0) {
        atEnd.run();
      }
    }
  }

  private void answer(KernelRequest request, KernelReply reply)
      throws FsException, InterruptedException {
    if (frozen) {
      inProgress.decrementAndGet();
      try {
        never.await();
      } finally {
        inProgress.incrementAndGet();
      }
    }
    if (request.isWhole()) {
      operations.handle(request, reply);
    } else {
      log.error("a request that is not as long as it says is passed over");
    }
  }
}
