package io.pmfs.posix;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

/** Waits for a condition that other threads or processes bring about, with a deadline. */
public final class Await {
  /** Only a test that fails waits so long: it is for busy machines. */
  public static final Duration DEADLINE = Duration.ofSeconds(60);

  private static final long SHORTEST = TimeUnit.MICROSECONDS.toNanos(200);
  private static final long LONGEST = TimeUnit.MILLISECONDS.toNanos(100);

  private Await() {}

  /** A condition whose evaluation may fail. */
  @FunctionalInterface
  public interface Condition<E extends Exception> {
    boolean holds() throws E;
  }

  public static <E extends Exception> void until(String what, Condition<E> condition) throws E {
    until(what, DEADLINE, condition);
  }

  public static <E extends Exception> void until(
      String what, Duration deadline, Condition<E> condition) throws E {
    until(() -> what, deadline, condition);
  }

  /**
   * Waits until the condition holds.
   *
   * @param what for the message of the failure: what did not happen
   */
  public static <E extends Exception> void until(
      Supplier<String> what, Duration deadline, Condition<E> condition) throws E {
    long began = System.nanoTime();
    while (!condition.holds()) {
      long waited = System.nanoTime() - began;
      if (waited > deadline.toNanos()) {
        throw new AssertionError("not after " + deadline.toSeconds() + " s: " + what.get());
      }
      // A tenth of the time lost at the end is not noticed; looking more often takes processors.
      LockSupport.parkNanos(Math.min(Math.max(waited / 10, SHORTEST), LONGEST));
    }
  }
}
