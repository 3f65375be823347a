package io.pmfs.daemon.report;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What readers got, and what the source was asked for, in the recent past: in the last {@link
 * #SPAN} of time in which something was read, or since the daemon started if that is less. Time in
 * which nothing was read says nothing, and does not count. Safe for use by many threads.
 */
@SuppressWarnings("FutureReturnValueIgnored") // what is repeated throws nothing
public final class RecentReads implements AutoCloseable {
  private static final Duration INTERVAL = Duration.ofSeconds(10);

  /** Of reading. */
  static final Duration SPAN = Duration.ofMinutes(10);

  private static final int MOST = (int) SPAN.dividedBy(INTERVAL);

  private final Supplier<Counts> present;
  private volatile @Nullable ScheduledExecutorService timer;
  private final Deque<Counts> samples = new ArrayDeque<>(); // GUARDED_BY(this); never empty

  /**
   * Counts of one daemon since its start.
   *
   * @param bytes that readers got: from it, from copies that the kernel reads by itself, and in a
   *     cluster peers from this node
   * @param sourceBytes that the source was asked for because of that; not by tasks
   * @param copied copies made
   * @param copiedAgain of these, of files that had been copied before
   * @param evicted copies removed to make room
   */
  public record Counts(long bytes, long sourceBytes, long copied, long copiedAgain, long evicted) {
    static final Counts NONE = new Counts(0, 0, 0, 0, 0);

    Counts minus(Counts earlier) {
      return new Counts(
          bytes - earlier.bytes,
          sourceBytes - earlier.sourceBytes,
          copied - earlier.copied,
          copiedAgain - earlier.copiedAgain,
          evicted - earlier.evicted);
    }

    /**
     * Whether the source was asked for at most nine tenths of what readers got. Readers that meet
     * at a file spare it a little, too.
     */
    boolean isSourceSpared() {
      return bytes > 0 && 10 * sourceBytes <= 9 * bytes;
    }
  }

  /** Of a daemon that has just started. */
  public RecentReads(Supplier<Counts> present) {
    this.present = present;
    samples.add(Counts.NONE);
  }

  /** Has the present counts remembered now and then, until it is closed. */
  public void start() {
    ScheduledExecutorService started =
        Executors.newSingleThreadScheduledExecutor(
            task -> {
              Thread thread = new Thread(task, "recent-reads");
              thread.setDaemon(true);
              return thread;
            });
    timer = started;
    started.scheduleAtFixedRate(
        this::sample, INTERVAL.toMillis(), INTERVAL.toMillis(), TimeUnit.MILLISECONDS);
  }

  @Override
  public void close() {
    ScheduledExecutorService started = timer;
    if (started != null) {
      started.shutdownNow();
    }
  }

  /** Remembers the present counts, if something was read since the last time. */
  void sample() {
    Counts now = present.get();
    synchronized (this) {
      if (now.bytes() == samples.getLast().bytes()) {
        return;
      }
      samples.addLast(now);
      while (samples.size() > MOST + 1) {
        samples.removeFirst();
      }
    }
  }

  /** What was counted in the recent past, up to now. */
  public Counts counts() {
    Counts now = present.get();
    synchronized (this) {
      return now.minus(samples.getFirst());
    }
  }
}
