package io.pmfs.mounts;

import java.time.Duration;
import java.util.function.Consumer;

/** A limited wait for a daemon, of which the user hears if it is long. */
final class Wait {
  /** A longer wait is worth a line. */
  private static final Duration UNTOLD = Duration.ofSeconds(2);

  private static final long POLL_MS = 100;

  private final Duration limit;
  private final Consumer<String> notice;
  private final long start = System.nanoTime();
  private boolean isTold;

  Wait(Duration limit, Consumer<String> notice) {
    this.limit = limit;
    this.notice = notice;
  }

  /**
   * Sleeps for a moment.
   *
   * @param line says what a long wait is for
   * @return false if the time is up
   */
  boolean pause(String line) {
    long waited = System.nanoTime() - start;
    if (waited > limit.toNanos()) {
      return false;
    }
    if (waited > UNTOLD.toNanos() && !isTold) {
      isTold = true;
      notice.accept(line);
    }
    try {
      Thread.sleep(POLL_MS);
      return true;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }
}
