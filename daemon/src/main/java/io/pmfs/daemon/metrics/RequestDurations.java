package io.pmfs.daemon.metrics;

import io.pmfs.fuse.RequestLatencies;
import io.prometheus.metrics.model.registry.Collector;
import io.prometheus.metrics.model.snapshots.ClassicHistogramBuckets;
import io.prometheus.metrics.model.snapshots.HistogramSnapshot;
import io.prometheus.metrics.model.snapshots.HistogramSnapshot.HistogramDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import java.util.ArrayList;
import java.util.List;

/**
 * The histogram of the requests' durations. The bridge counts into buckets of its own, which
 * Micrometer has no meter for, and so it goes to Prometheus's registry directly.
 */
final class RequestDurations implements Collector {
  private final Sources sources;

  RequestDurations(Sources sources) {
    this.sources = sources;
  }

  @Override
  public String getPrometheusName() {
    return "pmfs_request_duration_seconds";
  }

  @Override
  public MetricSnapshot collect() {
    List<Double> bounds = new ArrayList<>(RequestLatencies.boundsSeconds());
    bounds.add(Double.POSITIVE_INFINITY);
    HistogramSnapshot.Builder histogram =
        HistogramSnapshot.builder()
            .name(getPrometheusName())
            .help("How long requests of the kernel took, by operation of FUSE");
    for (RequestLatencies.Operation operation : sources.bridge().latencies().snapshot()) {
      List<Number> counts = new ArrayList<>(operation.buckets());
      histogram.dataPoint(
          HistogramDataPointSnapshot.builder()
              .labels(
                  Labels.of(
                      "dataset", sources.dataset(),
                      "mountpoint", sources.mountpoint(),
                      "operation", operation.operation()))
              .classicHistogramBuckets(ClassicHistogramBuckets.of(bounds, counts))
              .sum(operation.sumSeconds())
              .build());
    }
    return histogram.build();
  }
}
