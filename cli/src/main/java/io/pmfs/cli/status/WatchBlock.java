package io.pmfs.cli.status;

import io.pmfs.cli.tasks.DrainProgress;
import io.pmfs.cli.tasks.TaskLines;
import io.pmfs.daemon.report.ClusterReport;
import io.pmfs.daemon.report.DaemonReport;
import io.pmfs.daemon.report.DatasetReport;
import io.pmfs.daemon.report.OutputsReport;
import io.pmfs.daemon.report.RequestReport;
import io.pmfs.daemon.report.SourceReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.report.TaskReport;
import io.pmfs.daemon.report.TaskSummary;
import io.pmfs.daemon.report.TierReport;
import io.pmfs.machine.ByteSize;
import io.pmfs.machine.TimeSpan;
import io.pmfs.metadata.PathText;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/** The activity of a mount between two reports, for {@code pmfs status --watch}. */
final class WatchBlock {
  private static final int MOST_OPERATIONS = 5;
  private static final int BAR = 20;

  private final StatusReport now;
  private final @Nullable StatusReport before;
  private final double seconds;
  private final List<String> lines = new ArrayList<>();

  /**
   * @param before the same daemon's report {@code seconds} earlier; null if there is none
   */
  private WatchBlock(StatusReport now, @Nullable StatusReport before, double seconds) {
    this.now = now;
    this.before = before;
    this.seconds = seconds;
  }

  /** Lines without control characters; rates cover the time since the earlier report. */
  static List<String> of(StatusReport now, @Nullable StatusReport before, double seconds) {
    boolean isSame = before != null && before.daemon().pid() == now.daemon().pid() && seconds > 0;
    WatchBlock block = new WatchBlock(now, isSame ? before : null, seconds);
    block.head();
    OutputsReport outputs = now.outputs();
    if (outputs == null) {
      block.places();
    } else {
      block.add("writable", DrainProgress.text(outputs));
    }
    block.requests();
    block.add("waiting", StatusTable.waiting(now.kernel().waiting()));
    if (outputs == null) {
      block.background();
    }
    // Root also sees the reports of users' daemons.
    return block.lines.stream().map(line -> PathText.printable(line).stripTrailing()).toList();
  }

  private void head() {
    lines.add(StatusHeadline.title(now));
    String verdict = now.verdict();
    if (verdict != null) {
      lines.add("  " + verdict);
    }
    ClusterReport cluster = now.cluster();
    add("nodes", cluster == null ? null : cluster.absence());
    add(
        "daemon",
        "pid %d, up %s, %s over %s"
            .formatted(
                now.daemon().pid(),
                TimeSpan.format(Duration.ofSeconds(now.daemon().uptimeSeconds())),
                now.bridge().readMode(),
                now.bridge().bridge()));
  }

  /** The origins of the bytes read. */
  private void places() {
    DatasetReport.Reads then = before == null ? null : before.dataset().reads();
    DatasetReport.Reads reads = now.dataset().reads();
    long all = since(reads.bytes(), then == null ? 0 : then.bytes());
    add(
        "reading",
        "%s in %s requests%s"
            .formatted(
                bytesPerSecond(all),
                perSecond(since(reads.requests(), then == null ? 0 : then.requests())),
                reads.errors() == 0
                    ? ""
                    : String.format(Locale.ROOT, ", %,d errors so far", reads.errors())));
    add("", row("from", "", "share", "hits", "filled"));
    for (int i = 0; i < now.dataset().tiers().size(); i++) {
      TierReport tier = now.dataset().tiers().get(i);
      TierReport earlier =
          before == null || i >= before.dataset().tiers().size()
              ? null
              : before.dataset().tiers().get(i);
      long bytes = since(tier.readBytes(), earlier == null ? 0 : earlier.readBytes());
      long hits = since(tier.hits(), earlier == null ? 0 : earlier.hits());
      String state = tier.state().equals("on") ? "" : ", " + tier.state();
      add(
          tier.kind(),
          row(
              bytesPerSecond(bytes),
              "",
              share(bytes, all),
              perSecond(hits),
              bar(tier) + state + "  " + tier.path()));
    }
    long fetched = since(reads.fetched(), then == null ? 0 : then.fetched());
    add("just fetched", row(bytesPerSecond(fetched), "", share(fetched, all), "", ""));
    long missed = since(reads.fromSource(), then == null ? 0 : then.fromSource());
    String place = now.cluster() == null ? "source" : "elsewhere";
    add(place, row(bytesPerSecond(missed), "", share(missed, all), "", ""));
  }

  private static String row(String rate, String gap, String share, String hits, String rest) {
    return String.format(Locale.ROOT, "%12s%s %9s %10s  %s", rate, gap, share, hits, rest);
  }

  private static String bar(TierReport tier) {
    double filled =
        tier.capacityBytes() <= 0 ? 0 : tier.usedBytes() / (double) tier.capacityBytes();
    int full = (int) Math.round(Math.max(0, Math.min(1, filled)) * BAR);
    return String.format(
        Locale.ROOT,
        "[%s%s] %s of %s",
        "#".repeat(full),
        ".".repeat(BAR - full),
        ByteSize.format(tier.usedBytes()),
        ByteSize.format(tier.capacityBytes()));
  }

  private void requests() {
    RequestReport all = now.kernel().requests();
    if (all == null) {
      return;
    }
    RequestReport then = before == null ? null : before.kernel().requests();
    RequestReport shown = then == null ? all : all.since(then);
    add("", row("requests", "", "p50", "p99", then == null ? "since the start" : ""));
    shown.operations().stream()
        .sorted(
            Comparator.comparing(RequestReport.Operation::count)
                .reversed()
                .thenComparing(RequestReport.Operation::operation))
        .limit(MOST_OPERATIONS)
        .forEach(
            o ->
                add(
                    o.operation(),
                    row(
                        then == null
                            ? String.format(Locale.ROOT, "%,d", o.count())
                            : perSecond(o.count()),
                        "",
                        millis(o.p50Millis()),
                        millis(o.p99Millis()),
                        "")));
  }

  private void background() {
    SourceReport.Operations source = now.source().sourceOperations();
    SourceReport.Operations then = before == null ? null : before.source().sourceOperations();
    add(
        "source ops",
        "%s, %s"
            .formatted(
                perSecond(since(source.total(), then == null ? 0 : then.total())),
                bytesPerSecond(since(source.bytes(), then == null ? 0 : then.bytes()))));
    DatasetReport.Staging s = now.dataset().staging();
    long done = before == null ? 0 : before.dataset().staging().completed();
    add(
        "staging",
        String.format(
            Locale.ROOT,
            "%,d active, %,d queued, %s made, %,d failed, %,d without room, %,d evicted",
            s.active(),
            s.queued(),
            perSecond(since(s.completed(), done)),
            s.failed(),
            s.skippedNoRoom(),
            s.evicted()));
    TaskReport task = now.task();
    if (task != null) {
      add(
          task.isRunning() ? "task" : "last task",
          task.isRunning() ? TaskLines.text(task) : TaskSummary.of(task).text());
    }
    ClusterReport cluster = now.cluster();
    if (cluster != null) {
      long earlier =
          before == null || before.cluster() == null
              ? 0
              : Objects.requireNonNull(before.cluster()).bytesFromPeers();
      add(
          "peers",
          String.format(
              Locale.ROOT,
              "%,d nodes, %s from them, %.1f %% hits, %,d suspected",
              cluster.size(),
              bytesPerSecond(since(cluster.bytesFromPeers(), earlier)),
              cluster.peerHitRatio() * 100,
              cluster.suspected()));
    }
    DaemonReport.Memory memory = now.daemon().memory();
    add("memory", memory == null ? null : StatusTable.text(memory));
  }

  /** Negative if unknown. */
  private long since(long value, long earlier) {
    return before == null ? -1 : Math.max(0, value - earlier);
  }

  private String perSecond(long count) {
    return count < 0 ? "-" : String.format(Locale.ROOT, "%,.0f/s", count / seconds);
  }

  private String bytesPerSecond(long bytes) {
    return bytes < 0 ? "-" : ByteSize.format(Math.round(bytes / seconds)) + "/s";
  }

  private static String share(long part, long all) {
    return part < 0 || all <= 0 ? "-" : String.format(Locale.ROOT, "%.1f %%", 100.0 * part / all);
  }

  private static String millis(double value) {
    if (value == 0) {
      return "-";
    }
    return value < 0.1
        ? String.format(Locale.ROOT, "%.0f us", Math.max(1, value * 1e3))
        : String.format(Locale.ROOT, value < 10 ? "%.2f ms" : "%.0f ms", value);
  }

  private void add(String name, @Nullable String value) {
    if (value != null) {
      lines.add(String.format(Locale.ROOT, "  %-12s %s", name, value));
    }
  }
}
