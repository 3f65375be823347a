package io.pmfs.it;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/** Waiting for a condition, with a deadline. */
final class Await {
  private static final long SHORTEST = TimeUnit.MILLISECONDS.toNanos(5);
  private static final long LONGEST = TimeUnit.MILLISECONDS.toNanos(100);

  private Await() {}

  static void until(String what, Duration deadline, BooleanSupplier condition) {
    until(() -> what, deadline, condition);
  }

  static void until(Supplier<String> what, Duration deadline, BooleanSupplier condition) {
    long began = System.nanoTime();
    while (!condition.getAsBoolean()) {
      long waited = System.nanoTime() - began;
      if (waited > deadline.toNanos()) {
        throw new AssertionError("not after " + deadline.toSeconds() + " s: " + what.get());
      }
      // Most conditions start a process. A tenth of the time lost at the end is not noticed.
      LockSupport.parkNanos(Math.min(Math.max(waited / 10, SHORTEST), LONGEST));
    }
  }
}
