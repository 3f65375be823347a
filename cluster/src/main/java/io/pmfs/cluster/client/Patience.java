package io.pmfs.cluster.client;

import java.time.Duration;

/**
 * How long a reader may still wait for peers, over all its questions. Waiting for an answer uses it
 * up, except while the peer reports that it is itself waiting, or while content comes fast enough.
 * Used by one thread at a time.
 */
public final class Patience {
  /** With less than this left, a reader asks no further peer. */
  private static final long LEAST_NANOS = 50_000_000L;

  private long leftNanos;
  private long usedNanos;
  private long lostNanos;

  public Patience(Duration most) {
    this.leftNanos = most.toNanos();
  }

  /** Unlimited patience: only the timeouts of each question apply. */
  public static Patience endless() {
    return new Patience(Duration.ofDays(3_650));
  }

  public boolean isOver() {
    return leftNanos < LEAST_NANOS;
  }

  public long leftNanos() {
    return Math.max(0, leftNanos);
  }

  public long usedNanos() {
    return usedNanos;
  }

  /** The part of the used time without any answer. */
  public long lostNanos() {
    return lostNanos;
  }

  public void use(long nanos) {
    leftNanos -= nanos;
    usedNanos += nanos;
  }

  public void lost(long nanos) {
    lostNanos += nanos;
  }

  /** Takes back losses recorded since then. */
  public void forgiveLossesSince(long lostNanosThen) {
    lostNanos = lostNanosThen;
  }
}
