package io.pmfs.tier;

import io.pmfs.tier.TierStatus.State;
import java.io.IOException;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Whether a tier is in use, and why not. A tier starts {@code ON}, or {@code RECOVERING} until its
 * copies were counted. It becomes {@code FULL} with the disk, and {@code ON} when the disk has room
 * again. {@code FAILED} is final. Thread-safe.
 */
final class TierHealth {
  private static final Logger log = LoggerFactory.getLogger(TierHealth.class);

  /** How long to wait before a full disk is checked for room again. */
  private static final long FULL_RETRY_NANOS = 10_000_000_000L;

  private final String tier;
  private final LongAdder errors = new LongAdder();
  private volatile State state; // written under this
  private volatile @Nullable String reason; // written under this
  private long fullSinceNanos; // GUARDED_BY(this)

  /** Whether a disk has room for more copies. */
  interface RoomCheck {
    boolean hasRoom() throws IOException;
  }

  /**
   * The health of a tier that was just opened.
   *
   * @param tier its name
   * @param isCounted whether its copies are known, so that it may accept more at once
   */
  TierHealth(String tier, boolean isCounted) {
    this.tier = tier;
    this.state = isCounted ? State.ON : State.RECOVERING;
    this.reason = isCounted ? null : "not yet compared with the records";
  }

  State state() {
    return state;
  }

  /** Why the tier is not on; null while it is. */
  @Nullable String reason() {
    return reason;
  }

  boolean isOn() {
    return state == State.ON;
  }

  boolean acceptsLater() {
    return state == State.ON || state == State.RECOVERING;
  }

  boolean hasFailed() {
    return state == State.FAILED;
  }

  /** Whether the tier's copies were counted. */
  boolean isCounted() {
    return state == State.ON || state == State.FULL;
  }

  void countError() {
    errors.increment();
  }

  long errors() {
    return errors.sum();
  }

  void fail(String why) {
    turn(State.FAILED, why);
  }

  synchronized void fill(String why) {
    fullSinceNanos = System.nanoTime();
    turn(State.FULL, why);
  }

  private synchronized void turn(State next, String why) {
    if (state == next || state == State.FAILED) {
      return;
    }
    reason = why;
    state = next;
    log.warn("tier {} is {}: {}; reads continue from the next tier", tier, next, why);
  }

  /** Called when the tier's copies were counted. */
  synchronized void counted() {
    if (state == State.RECOVERING) {
      reason = null;
      state = State.ON;
    }
  }

  /** Whether the tier accepts copies; checks the disk of a full tier every 10 s. */
  boolean isOnAgain(RoomCheck disk) throws IOException {
    return state == State.ON || (state == State.FULL && hasRoomAgain(disk));
  }

  private synchronized boolean hasRoomAgain(RoomCheck disk) throws IOException {
    long now = System.nanoTime();
    if (state == State.FULL && now - fullSinceNanos >= FULL_RETRY_NANOS) {
      fullSinceNanos = now;
      if (disk.hasRoom()) {
        state = State.ON;
        reason = null;
        log.info("tier {} has room again", tier);
      }
    }
    return state == State.ON;
  }
}
