package io.pmfs.daemon.metrics;

import io.pmfs.daemon.report.RequestReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.metadata.PathText;
import io.prometheus.metrics.model.registry.Collector;
import io.prometheus.metrics.model.snapshots.ClassicHistogramBuckets;
import io.prometheus.metrics.model.snapshots.HistogramSnapshot;
import io.prometheus.metrics.model.snapshots.HistogramSnapshot.HistogramDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;

/**
 * The histogram of request durations. The bridge counts in its own buckets, for which Micrometer
 * has no meter, so the histogram is registered with Prometheus directly.
 */
final class RequestDurations implements Collector {
  private final Supplier<StatusReport> status;

  RequestDurations(Supplier<StatusReport> status) {
    this.status = status;
  }

  @Override
  public String getPrometheusName() {
    return "pmfs_request_duration_seconds";
  }

  @Override
  public MetricSnapshot collect() {
    HistogramSnapshot.Builder histogram =
        HistogramSnapshot.builder()
            .name(getPrometheusName())
            .help("How long requests of the kernel took, by operation of FUSE");
    StatusReport now = status.get();
    RequestReport requests = now.kernel().requests();
    if (requests == null) {
      return histogram.build();
    }
    List<Double> bounds = new ArrayList<>(requests.boundsSeconds());
    bounds.add(Double.POSITIVE_INFINITY);
    for (RequestReport.Operation operation : requests.operations()) {
      List<Number> counts = new ArrayList<>(operation.buckets());
      histogram.dataPoint(
          HistogramDataPointSnapshot.builder()
              .labels(
                  Labels.of(
                      "dataset", PathText.printable(now.mount().source()),
                      "mountpoint", PathText.printable(now.mount().mountpoint()),
                      "operation", operation.operation()))
              .classicHistogramBuckets(ClassicHistogramBuckets.of(bounds, counts))
              .sum(operation.sumSeconds())
              .build());
    }
    return histogram.build();
  }
}
