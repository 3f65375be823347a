package io.pmfs.cluster.server;

import io.netty.handler.codec.http.HttpResponseStatus;
import io.pmfs.cluster.peers.Refusal;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/**
 * Limits the memory of all answers of a node for content that waits to be sent. Counted in KiB.
 * Thread-safe.
 */
final class AnswerMemory {
  private static final int WAIT_SECONDS = 10;

  private final Semaphore kibibytes;

  AnswerMemory(int mebibytes) {
    this.kibibytes = new Semaphore(mebibytes << 10, true);
  }

  private static int kibibytes(int bytes) {
    return (bytes + (1 << 10) - 1) >> 10;
  }

  /** Takes memory if that much is free now. */
  boolean tryTake(int bytes) {
    return kibibytes.tryAcquire(kibibytes(bytes));
  }

  /** Takes memory; waits for others to release theirs, with a limit. */
  void take(int bytes) throws Refusal {
    boolean taken;
    try {
      taken = kibibytes.tryAcquire(kibibytes(bytes), WAIT_SECONDS, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      taken = false;
    }
    if (!taken) {
      throw new Refusal(
          HttpResponseStatus.SERVICE_UNAVAILABLE, "this node has no free memory for the answer");
    }
  }

  /** Releases as much memory as one call took. */
  void release(int bytes) {
    kibibytes.release(kibibytes(bytes));
  }
}
