package io.pmfs.tier;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Requests that wait until the test lets them go on. Neither they nor the test wait longer than 100
 * seconds. Thread-safe.
 */
public final class Hold {
  private static final long DEADLINE_SECONDS = 100;

  private final AtomicInteger count = new AtomicInteger();
  private final CountDownLatch reached = new CountDownLatch(1);
  private final CountDownLatch released = new CountDownLatch(1);

  public Hold() {}

  /** Holds the calling thread until the release. */
  public void pass() {
    count.incrementAndGet();
    reached.countDown();
    await(released, "let a held request go on");
  }

  /** Waits for the first request. */
  public void awaitReached() {
    await(reached, "made a request that is held");
  }

  /** How many requests there were so far, also after the release. */
  public int count() {
    return count.get();
  }

  /** Lets all requests go on, and those to come. */
  public void release() {
    released.countDown();
  }

  private static void await(CountDownLatch latch, String what) {
    try {
      if (!latch.await(DEADLINE_SECONDS, TimeUnit.SECONDS)) {
        throw new AssertionError("in " + DEADLINE_SECONDS + " s nobody " + what);
      }
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
