package io.pmfs.writable.remote;

import java.util.concurrent.TimeUnit;

/**
 * The attempts to send one request to another node. The time in which the node works on it does not
 * count as a failure, however long that is. Used by one thread.
 */
final class Attempts {
  private final long patienceNanos;
  private long begin = System.nanoTime();
  private boolean fail;
  private long failSince;

  /**
   * Before the first attempt.
   *
   * @param patienceMillis longer than a node may be silent before an attempt fails
   */
  Attempts(long patienceMillis) {
    this.patienceNanos = TimeUnit.MILLISECONDS.toNanos(patienceMillis);
  }

  void begin() {
    begin = System.nanoTime();
  }

  /** Ends a series of failures: the node was not asked, or answered. */
  void end() {
    fail = false;
  }

  /** Returns how long the attempts have failed; the last one has. */
  long failedMillis() {
    long now = System.nanoTime();
    if (!fail || now - begin >= patienceNanos) {
      failSince = now; // The node was working on the request.
    }
    fail = true;
    return TimeUnit.NANOSECONDS.toMillis(now - failSince);
  }
}
