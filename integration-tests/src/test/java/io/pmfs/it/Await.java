package io.pmfs.it;

import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/** Waiting for a condition, with a deadline. */
final class Await {
  private Await() {}

  static void until(String what, Duration deadline, BooleanSupplier condition) {
    until(() -> what, deadline, condition);
  }

  static void until(Supplier<String> what, Duration deadline, BooleanSupplier condition) {
    long end = System.nanoTime() + deadline.toNanos();
    while (!condition.getAsBoolean()) {
      if (System.nanoTime() - end > 0) {
        throw new AssertionError("not after " + deadline.toSeconds() + " s: " + what.get());
      }
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(5));
    }
  }
}
