package io.pmfs.daemon.process;

import java.time.Duration;
import java.util.function.LongSupplier;

/**
 * The time in which a new mount must be ready: {@code --ready-timeout}. Joining a cluster and the
 * first look through the mount share it. For one thread.
 */
public final class Readiness {
  /** The first look gets this long in any case: what came before was successful. */
  private static final Duration LEAST_FOR_MOUNT = Duration.ofSeconds(5);

  /** For what others need not be waited for. */
  private static final Duration SHORT = Duration.ofSeconds(10);

  private final Duration limit;
  private final LongSupplier nanoTime;
  private final long began;

  /** The time begins now. */
  public Readiness(Duration limit) {
    this(limit, System::nanoTime);
  }

  public Readiness(Duration limit, LongSupplier nanoTime) {
    this.limit = limit;
    this.nanoTime = nanoTime;
    this.began = nanoTime.getAsLong();
  }

  /** All of it. */
  public Duration limit() {
    return limit;
  }

  /** What is left, in whole seconds if the limit is; zero when it is over. */
  public Duration left() {
    Duration left = limit.minusNanos(nanoTime.getAsLong() - began);
    if (left.isNegative()) {
      return Duration.ZERO;
    }
    Duration rounded = Duration.ofSeconds(left.plusNanos(999_999_999).toSeconds());
    return rounded.compareTo(limit) < 0 ? rounded : limit;
  }

  /** What is left, but not longer than something optional should take. */
  public Duration leftForOptional() {
    Duration left = left();
    return left.compareTo(SHORT) < 0 ? left : SHORT;
  }

  /** What is left for the first look through the mount. */
  public Duration leftForMount() {
    Duration left = left();
    Duration least = LEAST_FOR_MOUNT.compareTo(limit) < 0 ? LEAST_FOR_MOUNT : limit;
    return left.compareTo(least) < 0 ? least : left;
  }
}
