package io.pmfs.fuse;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;

/**
 * The gate that workers pass before and after each request. Once shut it stays shut: a request
 * fetched later is not started, and the kernel resends it to the process that continues the
 * session. If the kernel cannot resend, the gate is closed instead: workers then fetch no more
 * requests.
 */
final class RequestGate {
  private static final long POLL_MS = 2;

  private final AtomicInteger inProgress = new AtomicInteger();
  private final LongAdder ended = new LongAdder();
  private final Listeners listeners = new Listeners();
  private final CountDownLatch never = new CountDownLatch(1);
  private volatile boolean shut;
  private volatile boolean closing;

  /** Runs an action whenever a request is fetched and no worker is left for the next one. */
  void whenNoneIsLeft(Runnable then) {
    listeners.whenNoneIsLeft(then);
  }

  /**
   * Call before fetching a request: may wait until another worker is needed. False if no more
   * requests are to be fetched.
   */
  boolean listen() {
    if (!closing) {
      listeners.begin();
    }
    return !closing;
  }

  /** Call after fetching a request, or failing to. */
  void heard() {
    listeners.end();
  }

  /** Stops making workers wait in {@link #listen}: call when a worker ends. */
  void disband() {
    listeners.disband();
  }

  /** Call before starting a request; does not return if the gate is shut. */
  void enter() throws InterruptedException {
    inProgress.incrementAndGet();
    // Count first, then check: either the thread that shuts the gate waits for this request, or
    // this thread sees the gate shut.
    if (shut) {
      inProgress.decrementAndGet();
      never.await();
    }
  }

  void exit() {
    ended.increment();
    inProgress.decrementAndGet();
  }

  /** Requests ended since the start. */
  long ended() {
    return ended.sum();
  }

  /** Makes each worker end after its next request. */
  void close() {
    closing = true;
    listeners.disband();
  }

  /** Whether workers fetch no more. */
  boolean isClosing() {
    return closing;
  }

  /** Whether requests are fetched and started. */
  boolean isOpen() {
    return !closing && !shut;
  }

  /** Requests started and not ended. */
  int inProgress() {
    return inProgress.get();
  }

  /** Shuts the gate and waits until no request is in progress; false on timeout. */
  boolean shut(Duration timeout) throws InterruptedException {
    shut = true;
    long deadline = System.nanoTime() + timeout.toNanos();
    while (inProgress.get() > 0) {
      if (System.nanoTime() > deadline) {
        return false;
      }
      Thread.sleep(POLL_MS);
    }
    return true;
  }
}
