package io.pmfs.tier;

import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/** Waits for other threads, with a deadline. */
public final class Await {
  private static final Duration DEADLINE = Duration.ofSeconds(20);

  private Await() {}

  /** A condition that may throw. */
  @FunctionalInterface
  public interface Condition {
    boolean holds() throws Exception;
  }

  public static void until(String what, Condition condition) throws Exception {
    long start = System.nanoTime();
    while (!condition.holds()) {
      if (System.nanoTime() - start > DEADLINE.toNanos()) {
        throw new AssertionError("in vain waited until " + what);
      }
      LockSupport.parkNanos(200_000);
    }
  }
}
