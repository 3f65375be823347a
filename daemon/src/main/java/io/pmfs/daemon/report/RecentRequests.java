package io.pmfs.daemon.report;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.LongSupplier;

/** The number of requests to the source in the last minute. Thread-safe. */
public final class RecentRequests {
  private static final int MOST = (int) Duration.ofMinutes(1).dividedBy(RecentReads.INTERVAL);

  private final LongSupplier present;
  private final Deque<Long> samples = new ArrayDeque<>(); // GUARDED_BY(this); never empty

  /**
   * Starts with no requests.
   *
   * @param present the number of all requests since the start
   */
  public RecentRequests(LongSupplier present) {
    this.present = present;
    samples.add(0L);
  }

  /** Records the present number; called every {@link RecentReads#INTERVAL}. */
  synchronized void sample() {
    samples.addLast(present.getAsLong());
    while (samples.size() > MOST) {
      samples.removeFirst();
    }
  }

  /** The requests of the last 50 to 60 s; samples are 10 s apart. */
  public synchronized long lastMinute() {
    return present.getAsLong() - samples.getFirst();
  }
}
