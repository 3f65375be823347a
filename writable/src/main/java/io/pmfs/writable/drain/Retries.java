package io.pmfs.writable.drain;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * When the committer retries changes that the source lacks: passes over all of them in order, with
 * pauses that grow while nothing succeeds. Used by the committer; other threads only request
 * passes.
 */
public final class Retries {
  private static final long FIRST_PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long LONGEST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(30);

  private final Set<Long> asked = ConcurrentHashMap.newKeySet();
  private Set<Long> asides = Set.of();
  private long next = -1;
  private long last;
  private long pauseNanos = FIRST_PAUSE_NANOS;
  private long atNanos = System.nanoTime();
  private boolean hasSucceeded;
  private volatile long wanted;
  private final AtomicLong begun = new AtomicLong();
  private volatile long ended;

  /** Requests a pass; returns its number. */
  public long ask() {
    long pass = begun.get() + 1;
    wanted = pass;
    return pass;
  }

  /** Requests a pass that includes these changes, although they were set aside. */
  public long ask(Set<Long> sequences) {
    asked.addAll(sequences);
    return ask();
  }

  public boolean isAsked(long sequence) {
    return asides.contains(sequence);
  }

  /** Whether this pass, or a later one, has ended. */
  public boolean hasEnded(long pass) {
    return ended >= pass;
  }

  /** Schedules the next pass after the shortest pause, because something has changed. */
  public void soon() {
    if (pauseNanos > FIRST_PAUSE_NANOS || next < 0) {
      pauseNanos = FIRST_PAUSE_NANOS;
      atNanos = System.nanoTime() + FIRST_PAUSE_NANOS;
    }
  }

  /**
   * Whether a pass is running; starts one if it is due and there is something to retry.
   *
   * @param head the last change so far, with which a pass that starts now ends
   */
  public boolean isRunning(boolean hasEntries, long head) {
    boolean isDue = wanted > begun.get() || (hasEntries && System.nanoTime() - atNanos >= 0);
    if (next < 0 && isDue) {
      next = 0;
      last = head;
      hasSucceeded = false;
      begun.incrementAndGet();
      asides = Set.copyOf(asked);
      asked.removeAll(asides);
    }
    return next >= 0;
  }

  /** The sequence number at which the pass continues. */
  public long next() {
    return next;
  }

  /** The sequence number at which the pass ends. */
  public long last() {
    return last;
  }

  public void behind(long sequence) {
    next = sequence + 1;
  }

  public void succeeded() {
    hasSucceeded = true;
  }

  public void end() {
    next = -1;
    asides = Set.of();
    pauseNanos = hasSucceeded ? FIRST_PAUSE_NANOS : Math.min(LONGEST_PAUSE_NANOS, 2 * pauseNanos);
    atNanos = System.nanoTime() + pauseNanos;
    ended = begun.get();
  }
}
