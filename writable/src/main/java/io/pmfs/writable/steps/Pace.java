package io.pmfs.writable.steps;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/** Limits and measures copying to the source. Thread-safe. */
public final class Pace {
  private static final int LIMITED_BYTES = 1 << 20;

  private static final int SECONDS = 10;

  private final long bytesPerSecond;
  private final LongSupplier nanoTime;
  private final long[] perSecond = new long[SECONDS + 1]; // GUARDED_BY(this)
  private long second; // GUARDED_BY(this)
  private long total; // GUARDED_BY(this)
  private long freeAtMillis; // GUARDED_BY(this)

  /**
   * A limit in bytes per second; 0 for none.
   *
   * @param nanoTime a monotonic clock
   */
  public Pace(long bytesPerSecond, LongSupplier nanoTime) {
    this.bytesPerSecond = bytesPerSecond;
    this.nanoTime = nanoTime;
  }

  private long millis() {
    return TimeUnit.NANOSECONDS.toMillis(nanoTime.getAsLong());
  }

  /** The most to take at once, so that the limit is not exceeded by much. */
  public int atOnce(int most) {
    return bytesPerSecond == 0 ? most : Math.min(most, LIMITED_BYTES);
  }

  public void take(int bytes) throws FsException {
    long pause = 0;
    synchronized (this) {
      long now = millis();
      count(now, bytes);
      if (bytesPerSecond > 0) {
        pause = Math.max(0, freeAtMillis - now);
        freeAtMillis = Math.max(freeAtMillis, now) + bytes * 1000L / bytesPerSecond;
      }
    }
    if (pause > 0) {
      try {
        Thread.sleep(pause);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new FsException(Errno.EINTR, "waiting for the rate limit", e);
      }
    }
  }

  private void count(long now, int bytes) { // GUARDED_BY(this)
    advance(now / 1000);
    perSecond[(int) (second % perSecond.length)] += bytes;
    total += bytes;
  }

  private void advance(long to) { // GUARDED_BY(this)
    if (to - second > perSecond.length) {
      Arrays.fill(perSecond, 0);
      second = to;
    }
    while (second < to) {
      second++;
      perSecond[(int) (second % perSecond.length)] = 0;
    }
  }

  public synchronized long totalBytes() {
    return total;
  }

  /** The mean rate of the last ten seconds. */
  public synchronized long recentBytesPerSecond() {
    advance(millis() / 1000);
    long sum = 0;
    for (long bytes : perSecond) {
      sum += bytes;
    }
    return sum / SECONDS;
  }
}
