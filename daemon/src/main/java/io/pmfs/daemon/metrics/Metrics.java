package io.pmfs.daemon.metrics;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.jvm.ClassLoaderMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmGcMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmMemoryMetrics;
import io.micrometer.core.instrument.binder.jvm.JvmThreadMetrics;
import io.micrometer.core.instrument.binder.system.FileDescriptorMetrics;
import io.micrometer.core.instrument.binder.system.ProcessorMetrics;
import io.micrometer.core.instrument.binder.system.UptimeMetrics;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.pmfs.daemon.report.ClusterReport;
import io.pmfs.daemon.report.Figure;
import io.pmfs.daemon.report.NodeCacheReport;
import io.pmfs.daemon.report.OutputsReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.report.TierReport;
import io.pmfs.metadata.PathText;
import java.lang.reflect.Method;
import java.lang.reflect.RecordComponent;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/**
 * The metrics of one mount in Prometheus's text format: all figures of its {@link Snapshot} that
 * have a metric, and Micrometer's metrics of the JVM. docs/metrics.md lists them. Counts nothing
 * itself. Thread-safe.
 */
public final class Metrics implements AutoCloseable {
  /** The content type of {@link #text}. */
  public static final String CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

  private static final String TOTAL = "_total";

  /** Parts that a mount has from the start or never. */
  private static final Set<Class<?>> IF_THERE =
      Set.of(OutputsReport.class, NodeCacheReport.class, ClusterReport.class);

  private final PrometheusMeterRegistry registry =
      new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
  private final JvmGcMetrics collections = new JvmGcMetrics();
  private final Supplier<Snapshot> counts;

  /** The snapshot for the current answer, whose values are thus from one moment. */
  private volatile Snapshot snapshot;

  /**
   * The mount's tiers and its membership in a cluster must not change.
   *
   * @param version the version of pmfs
   * @param commit the commit that was built; null if it is not known
   */
  public Metrics(String version, @Nullable String commit, Supplier<Snapshot> counts) {
    this.counts = counts;
    snapshot = counts.get();
    StatusReport first = snapshot.status();
    registry
        .config()
        .commonTags(
            "dataset",
            PathText.printable(first.mount().source()),
            "mountpoint",
            PathText.printable(first.mount().mountpoint()));
    meter(
        "pmfs_info",
        "always 1; the labels are the version of pmfs, its commit and the bridge",
        // Prometheus drops empty labels.
        Tags.of(
            "version",
            version,
            "commit",
            commit == null ? "" : commit,
            "bridge",
            first.bridge().bridge()),
        now -> 1);
    figures(Snapshot.class, Tags.empty(), now -> now);
    for (int i = 0; i < first.dataset().tiers().size(); i++) {
      int index = i;
      figures(
          TierReport.class,
          Tags.of("tier", PathText.printable(first.dataset().tiers().get(i).name())),
          now -> now.status().dataset().tiers().get(index));
    }
    registry.getPrometheusRegistry().register(new RequestDurations(() -> snapshot.status()));
    List.of(
            new JvmMemoryMetrics(),
            collections,
            new JvmThreadMetrics(),
            new ClassLoaderMetrics(),
            new ProcessorMetrics(),
            new FileDescriptorMetrics(),
            new UptimeMetrics())
        .forEach(binder -> binder.bindTo(registry));
  }

  public synchronized String text() {
    snapshot = counts.get();
    return registry.scrape(CONTENT_TYPE);
  }

  /**
   * Registers the figures of a part of a snapshot, and of all records in it. Null figures, and all
   * figures of a null part, are exported as 0.
   */
  private void figures(Class<?> type, Tags tags, Function<Snapshot, @Nullable Object> part) {
    for (Method getter : type.getMethods()) {
      Figure figure = getter.getAnnotation(Figure.class);
      if (figure != null && !figure.metric().isEmpty()) {
        meter(
            figure.metric(),
            figure.value(),
            tags.and(figure.label()),
            now -> number(value(getter, part.apply(now))));
      }
    }
    for (RecordComponent component : type.getRecordComponents()) {
      Function<Snapshot, @Nullable Object> inner =
          now -> value(component.getAccessor(), part.apply(now));
      Class<?> record = component.getType();
      if (record.isRecord() && (!IF_THERE.contains(record) || inner.apply(snapshot) != null)) {
        figures(record, tags, inner);
      }
    }
  }

  private static @Nullable Object value(Method getter, @Nullable Object part) {
    try {
      return part == null ? null : getter.invoke(part);
    } catch (ReflectiveOperationException e) {
      throw new IllegalStateException(getter.toString(), e);
    }
  }

  private static double number(@Nullable Object value) {
    return value instanceof Boolean is
        ? (is ? 1 : 0)
        : value == null ? 0 : ((Number) value).doubleValue();
  }

  private void meter(
      String metric, String help, Tags tags, ToDoubleFunction<Snapshot> valueOfSnapshot) {
    ToDoubleFunction<Metrics> value = self -> valueOfSnapshot.applyAsDouble(self.snapshot);
    String description =
        help.substring(0, 1).toUpperCase(Locale.ROOT) + help.substring(1).replace("`", "");
    // Micrometer's names have dots, and it adds this suffix itself.
    if (metric.endsWith(TOTAL)) {
      String name = metric.substring(0, metric.length() - TOTAL.length()).replace('_', '.');
      FunctionCounter.builder(name, this, value)
          .description(description)
          .tags(tags)
          .register(registry);
    } else {
      Gauge.builder(metric.replace('_', '.'), this, value)
          .description(description)
          .tags(tags)
          .register(registry);
    }
  }

  @Override
  public void close() {
    collections.close();
    registry.close();
  }
}
