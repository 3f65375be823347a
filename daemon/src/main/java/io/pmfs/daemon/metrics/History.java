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

/** The counts of the last hour, for the graphs of the web page, in about 100 KiB. Thread-safe. */
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
   * @param fetched bytes served from just fetched data
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

  /** The samples of up to an hour, oldest first, and the names of the tiers. */
  public record Hour(long intervalMillis, List<String> tiers, List<Sample> samples) {}

  /** Adds a sample and drops the oldest. */
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

  /** The samples and the present counts. */
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
