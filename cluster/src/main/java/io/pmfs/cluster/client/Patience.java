package io.pmfs.cluster.client;

import java.time.Duration;

/**
 * How long a reader goes on waiting for peers, for all of them together, whatever it asks them.
 * Waiting for an answer uses it up, except while the peer says that it is itself waiting, and while
 * content comes fast enough. Used by one thread at a time.
 */
public final class Patience {
  /** With less than this left, a reader asks no peer. */
  private static final long LEAST_NANOS = 50_000_000L;

  private long leftNanos;
  private long usedNanos;
  private long lostNanos;

  public Patience(Duration most) {
    this.leftNanos = most.toNanos();
  }

  /** Of one who does not hurry: only the limits of each question count. */
  public static Patience endless() {
    return new Patience(Duration.ofDays(3_650));
  }

  /** Whether no peer is to be asked any more. */
  public boolean isOver() {
    return leftNanos < LEAST_NANOS;
  }

  public long leftNanos() {
    return Math.max(0, leftNanos);
  }

  /** The time used since the beginning. */
  public long usedNanos() {
    return usedNanos;
  }

  /** The part of it in which nothing came. */
  public long lostNanos() {
    return lostNanos;
  }

  /** Time has passed. */
  public void use(long nanos) {
    leftNanos -= nanos;
    usedNanos += nanos;
  }

  /** Some of the time used was in vain. */
  public void lost(long nanos) {
    lostNanos += nanos;
  }

  /** What was lost since then is no more than used. */
  public void forgiveLossesSince(long lostNanosThen) {
    lostNanos = lostNanosThen;
  }
}
