package io.pmfs.daemon.process;

import java.time.Duration;
import java.util.function.LongSupplier;

/**
 * The time limit for a new mount ({@code --ready-timeout}), shared by joining a cluster and the
 * first request through the mount. Not thread-safe.
 */
public final class Readiness {
  /**
   * The least time for the first request through the mount, because the earlier steps succeeded.
   */
  private static final Duration LEAST_FOR_MOUNT = Duration.ofSeconds(5);

  /** The limit for optional steps. */
  private static final Duration SHORT = Duration.ofSeconds(10);

  private final Duration limit;
  private final LongSupplier nanoTime;
  private final long began;

  /** Starts the time. */
  public Readiness(Duration limit) {
    this(limit, System::nanoTime);
  }

  public Readiness(Duration limit, LongSupplier nanoTime) {
    this.limit = limit;
    this.nanoTime = nanoTime;
    this.began = nanoTime.getAsLong();
  }

  public Duration limit() {
    return limit;
  }

  /** The remaining time, in whole seconds if the limit is; zero when it is over. */
  public Duration left() {
    Duration left = limit.minusNanos(nanoTime.getAsLong() - began);
    if (left.isNegative()) {
      return Duration.ZERO;
    }
    Duration rounded = Duration.ofSeconds(left.plusNanos(999_999_999).toSeconds());
    return rounded.compareTo(limit) < 0 ? rounded : limit;
  }

  /** The remaining time for an optional step. */
  public Duration leftForOptional() {
    Duration left = left();
    return left.compareTo(SHORT) < 0 ? left : SHORT;
  }

  /** The remaining time for the first request through the mount. */
  public Duration leftForMount() {
    Duration left = left();
    Duration least = LEAST_FOR_MOUNT.compareTo(limit) < 0 ? LEAST_FOR_MOUNT : limit;
    return left.compareTo(least) < 0 ? least : left;
  }
}
