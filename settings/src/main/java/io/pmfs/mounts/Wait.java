package io.pmfs.mounts;

import java.time.Duration;
import java.util.function.Consumer;

/** A limited wait for a daemon, reported to the user if it is long. */
final class Wait {
  /** A longer wait is reported. */
  private static final Duration LONG = Duration.ofSeconds(2);

  private static final long POLL_MS = 100;

  private final Duration limit;
  private final Consumer<String> notice;
  private final long start = System.nanoTime();
  private boolean isReported;

  Wait(Duration limit, Consumer<String> notice) {
    this.limit = limit;
    this.notice = notice;
  }

  /**
   * Sleeps for a moment.
   *
   * @param line describes a long wait
   * @return false if the time is up
   */
  boolean pause(String line) {
    long waited = System.nanoTime() - start;
    if (waited > limit.toNanos()) {
      return false;
    }
    if (waited > LONG.toNanos() && !isReported) {
      isReported = true;
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
