package io.pmfs.daemon.metrics;

import io.pmfs.daemon.report.ClusterReport;
import io.pmfs.daemon.report.StatusReport;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Supplier;

/**
 * The counts of the last hour, so that a page that is opened late shows the past. Takes some 100
 * KiB. Safe for use by many threads.
 */
public final class History {
  /** How often {@link #sample} is to be called. */
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
   * What was counted up to a moment.
   *
   * @param tiers bytes that each tier's copies answered
   * @param fetched bytes that what was read from the source a moment before answered
   * @param missed bytes that came from the source or from peers
   * @param peers of all contents, for readers and for copies, those that came from peers
   * @param source the same from the source
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

  /** Adds the present counts; the oldest go. */
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
        now.reads().requests(),
        now.reads().errors(),
        now.tiers().stream().map(StatusReport.TierStatus::readBytes).toList(),
        now.reads().fetched(),
        now.reads().fromSource(),
        cluster == null ? 0 : cluster.bytesFromPeers(),
        now.sourceOperations().bytes());
  }

  /** The past and the present. */
  public Hour hour() {
    StatusReport now = status.get();
    List<String> tiers = now.tiers().stream().map(StatusReport.TierStatus::name).toList();
    List<Sample> all;
    synchronized (this) {
      all = new ArrayList<>(samples);
    }
    all.add(sample(now));
    return new Hour(INTERVAL.toMillis(), tiers, all);
  }
}
