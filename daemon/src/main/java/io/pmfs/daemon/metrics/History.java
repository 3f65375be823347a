package io.pmfs.daemon.metrics;

import io.pmfs.daemon.report.ClusterReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.report.TierReport;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Supplier;

/**
 * The counts of the last hour, so that the web page shows the past when it is opened. Takes some
 * 100 KiB. Safe for use by many threads.
 */
public final class History {
  /** How often to call {@link #sample}. */
  public static final Duration INTERVAL = Duration.ofSeconds(5);

  private static final Duration SPAN = Duration.ofHours(1);

  private final Supplier<StatusReport> status;
  private final InstantSource clock;
  private final int most = (int) SPAN.dividedBy(INTERVAL) + 1;
  private final Deque<Sample> samples = new ArrayDeque<>(); // GUARDED_BY(this)

  public History(Supplier<StatusReport> status, InstantSource clock) {
    this.status = status;
    this.clock = clock;
  }

  /**
   * The counts at one moment.
   *
   * @param tiers bytes served from each tier's copies
   * @param fetched bytes served from data just fetched
   * @param missed bytes for which readers waited for the source or peers
   * @param peers bytes of contents from peers, for readers and for copies
   * @param source bytes of contents from the source, likewise
   */
  public record Sample(
      long timeMillis,
      long requests,
      long errors,
      List<Long> tiers,
      long fetched,
      long missed,
      long peers,
      long source) {}

  /** The samples of at most an hour, oldest first, and the names of the tiers in their order. */
  public record Hour(long intervalMillis, List<String> tiers, List<Sample> samples) {}

  /** Adds the present counts and drops the oldest. */
  public void sample() {
    Sample now = sample(status.get());
    synchronized (this) {
      samples.addLast(now);
      while (samples.size() > most) {
        samples.removeFirst();
      }
    }
  }

  private Sample sample(StatusReport now) {
    ClusterReport cluster = now.cluster();
    return new Sample(
        clock.millis(),
        now.dataset().reads().requests(),
        now.dataset().reads().errors(),
        now.dataset().tiers().stream().map(TierReport::readBytes).toList(),
        now.dataset().reads().fetched(),
        now.dataset().reads().fromSource(),
        cluster == null ? 0 : cluster.bytesFromPeers(),
        now.source().sourceOperations().bytes());
  }

  /** The samples of the past, and the present counts. */
  public Hour hour() {
    StatusReport now = status.get();
    List<String> tiers = now.dataset().tiers().stream().map(TierReport::name).toList();
    List<Sample> all;
    synchronized (this) {
      all = new ArrayList<>(samples);
    }
    all.add(sample(now));
    return new Hour(INTERVAL.toMillis(), tiers, all);
  }
}
