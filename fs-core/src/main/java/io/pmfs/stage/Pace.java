package io.pmfs.stage;

import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;

/**
 * Limits the operations and bytes per second that one task may request from the source. Requests
 * are spaced evenly, without bursts: each starts when those before it have used up their time.
 */
public final class Pace {
  public static final Pace UNLIMITED = new Pace(0, 0, System::nanoTime);

  /** How often a waiting thread checks whether to continue. */
  private static final long PATIENCE_NANOS = 100_000_000;

  private static final double SECOND_NANOS = 1e9;

  private final long bytesPerSecond;
  private final long operationsPerSecond;
  private final LongSupplier nanoTime;
  private double bytesFreeAt = Double.NEGATIVE_INFINITY; // GUARDED_BY(this)
  private double operationsFreeAt = Double.NEGATIVE_INFINITY; // GUARDED_BY(this)

  /** Limits bytes and operations per second; 0 for no limit. */
  public Pace(long bytesPerSecond, long operationsPerSecond, LongSupplier nanoTime) {
    this.bytesPerSecond = bytesPerSecond;
    this.operationsPerSecond = operationsPerSecond;
    this.nanoTime = nanoTime;
  }

  public boolean isLimited() {
    return bytesPerSecond != 0 || operationsPerSecond != 0;
  }

  /** Waits until this much may be requested, or until the caller hurries or gives up. */
  public void await(long operations, long bytes, BooleanSupplier hurries) {
    if (!isLimited()) {
      return;
    }
    long wait = reserve(operations, bytes);
    long start = System.nanoTime();
    for (long rest = wait; rest > 0 && !hurries.getAsBoolean(); ) {
      LockSupport.parkNanos(this, Math.min(rest, PATIENCE_NANOS));
      rest = wait - (System.nanoTime() - start);
    }
  }

  /** Reserves the next slot; returns the nanoseconds until it. */
  synchronized long reserve(long operations, long bytes) {
    double now = nanoTime.getAsLong();
    bytesFreeAt = Math.max(bytesFreeAt, now);
    operationsFreeAt = Math.max(operationsFreeAt, now);
    double start = Math.max(bytesFreeAt, operationsFreeAt);
    if (bytesPerSecond > 0) {
      bytesFreeAt += bytes * SECOND_NANOS / bytesPerSecond;
    }
    if (operationsPerSecond > 0) {
      operationsFreeAt += operations * SECOND_NANOS / operationsPerSecond;
    }
    return (long) (start - now);
  }
}
