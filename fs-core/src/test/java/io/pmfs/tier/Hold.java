package io.pmfs.tier;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Requests that wait until the test releases them. Neither they nor the test wait longer than 100
 * seconds. Thread-safe.
 */
public final class Hold {
  private static final long DEADLINE_SECONDS = 100;

  private final AtomicInteger count = new AtomicInteger();
  private final CountDownLatch reached = new CountDownLatch(1);
  private final CountDownLatch released = new CountDownLatch(1);

  public Hold() {}

  /** Blocks the calling thread until the release. */
  public void pass() {
    count.incrementAndGet();
    reached.countDown();
    await(released, "released the requests");
  }

  /** Waits for the first request. */
  public void awaitReached() {
    await(reached, "made a request");
  }

  /** How many requests were made so far, including those after the release. */
  public int count() {
    return count.get();
  }

  /** Releases all present and future requests. */
  public void release() {
    released.countDown();
  }

  private static void await(CountDownLatch latch, String what) {
    try {
      if (!latch.await(DEADLINE_SECONDS, TimeUnit.SECONDS)) {
        throw new AssertionError("in " + DEADLINE_SECONDS + " s no thread " + what);
      }
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
