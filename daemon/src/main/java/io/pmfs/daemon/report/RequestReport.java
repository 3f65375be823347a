package io.pmfs.daemon.report;

import io.pmfs.fuse.protocol.RequestLatencies;
import java.util.ArrayList;
import java.util.List;

/** Durations of the kernel's requests since the daemon started, in {@code pmfs status --json}. */
public record RequestReport(
    @Figure("the upper bounds of all buckets but the last, ascending") List<Double> boundsSeconds,
    List<Operation> operations) {
  /** The requests of one operation. */
  public record Operation(
      @Figure("as FUSE calls it, in lower case") String operation,
      @Figure("requests of the kernel since the start, without the daemon's own" + " heartbeat")
          long count,
      @Figure("how long all of them took together") double sumSeconds,
      @Figure("estimated from the buckets: half of them took at most this long") double p50Millis,
      @Figure("estimated likewise: the 99th percentile") double p99Millis,
      @Figure(
              "for each bound, how many requests took at most that long but longer than the"
                  + " previous bound; the last bucket counts those that exceeded all bounds")
          List<Long> buckets) {}

  public static RequestReport of(RequestLatencies latencies) {
    List<Double> bounds = RequestLatencies.boundsSeconds();
    return new RequestReport(
        bounds,
        latencies.snapshot().stream()
            .map(o -> operation(bounds, o.operation(), o.sumSeconds(), o.buckets()))
            .toList());
  }

  private static Operation operation(
      List<Double> bounds, String name, double sumSeconds, List<Long> buckets) {
    return new Operation(
        name,
        buckets.stream().mapToLong(Long::longValue).sum(),
        sumSeconds,
        quantileMillis(bounds, buckets, 0.5),
        quantileMillis(bounds, buckets, 0.99),
        buckets);
  }

  /** The requests since an earlier report of the same daemon. */
  public RequestReport since(RequestReport earlier) {
    List<Operation> since = new ArrayList<>();
    for (Operation now : operations) {
      Operation then =
          earlier.operations.stream()
              .filter(o -> o.operation().equals(now.operation()))
              .findFirst()
              .orElse(null);
      since.add(then == null ? now : difference(now, then));
    }
    return new RequestReport(boundsSeconds, since);
  }

  private Operation difference(Operation now, Operation then) {
    List<Long> buckets = new ArrayList<>();
    for (int i = 0; i < now.buckets().size(); i++) {
      long before = i < then.buckets().size() ? then.buckets().get(i) : 0;
      buckets.add(Math.max(0, now.buckets().get(i) - before));
    }
    return operation(boundsSeconds, now.operation(), now.sumSeconds() - then.sumSeconds(), buckets);
  }

  /**
   * Estimates a quantile as Prometheus's histogram_quantile does, assuming that values are spread
   * evenly within a bucket. 0 without values; the last bound for values beyond it.
   */
  static double quantileMillis(List<Double> boundsSeconds, List<Long> buckets, double quantile) {
    long all = buckets.stream().mapToLong(Long::longValue).sum();
    double rank = quantile * all;
    long below = 0;
    for (int i = 0; i < Math.min(boundsSeconds.size(), buckets.size()); i++) {
      long here = buckets.get(i);
      if (here > 0 && below + here >= rank) {
        double low = i == 0 ? 0 : boundsSeconds.get(i - 1);
        double high = boundsSeconds.get(i);
        return 1e3 * (low + (high - low) * Math.max(0, rank - below) / here);
      }
      below += here;
    }
    return all == 0 || boundsSeconds.isEmpty()
        ? 0
        : 1e3 * boundsSeconds.get(boundsSeconds.size() - 1);
  }
}
