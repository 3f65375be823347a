package io.pmfs.cli.status;

import io.pmfs.cli.tasks.DrainProgress;
import io.pmfs.daemon.report.ClusterReport;
import io.pmfs.daemon.report.KernelReport;
import io.pmfs.daemon.report.MountReport;
import io.pmfs.daemon.report.OutputsReport;
import io.pmfs.daemon.report.RecentReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.report.TierReport;
import io.pmfs.machine.ByteSize;
import io.pmfs.machine.TimeSpan;
import io.pmfs.metadata.PathText;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** The first lines of {@code pmfs status}, at most seven: whether a mount works. */
final class StatusHeadline {
  private static final long MINUTE_SECONDS = 60;

  private final List<String> lines = new ArrayList<>();

  private StatusHeadline() {}

  /** Lines without control characters. */
  static List<String> of(StatusReport report) {
    StatusHeadline headline = new StatusHeadline();
    headline.lines.add(title(report));
    OutputsReport outputs = report.outputs();
    if (outputs != null) {
      headline.outputs(report, outputs);
      return headline.printable();
    }
    String verdict = report.verdict();
    if (verdict != null) {
      headline.lines.add("  " + verdict);
    }
    headline.add("errors", failures(report));
    headline.add("nodes", absence(report));
    RecentReport recent = report.dataset().recent();
    headline.add("read lately", recent == null ? null : origins(report, recent));
    headline.add("source", source(report));
    // A daemon that does not report recent counts does not report the room either.
    headline.add("room", recent == null ? null : room(report.dataset().tiers()));
    return headline.printable();
  }

  /** Root also sees the reports of users' daemons. */
  private List<String> printable() {
    return lines.stream().map(line -> PathText.printable(line)).toList();
  }

  private void outputs(StatusReport report, OutputsReport outputs) {
    lines.add(
        "  writable (experimental): "
            + (outputs.isDrained() && outputs.refused() == 0 && !outputs.isNodeAway()
                ? drained(report)
                : DrainProgress.text(outputs)));
    add("nodes", absence(report));
    add(
        "conflicts",
        outputs.conflicts() == 0
            ? null
            : String.format(
                Locale.ROOT,
                outputs.conflicts() == 1
                    ? "another program changed %,d file or directory, too; its change was kept"
                    : "another program changed %,d files or directories, too; its changes were kept",
                outputs.conflicts()));
    add("source", source(report));
  }

  /** A missing node may have changes that no other node knows of. */
  private static String drained(StatusReport report) {
    return absence(report) == null
        ? "all is at the source"
        : "all known changes are at the source; those of missing nodes are unknown";
  }

  /** A message about missing nodes; null if none are missing. */
  private static @Nullable String absence(StatusReport report) {
    ClusterReport cluster = report.cluster();
    return cluster == null ? null : cluster.absence();
  }

  /** A message about readers' recent failed requests; null if there are none. */
  static @Nullable String failures(StatusReport report) {
    KernelReport.Failures failures = report.kernel().failures();
    if (failures == null || failures.lately() <= 0) {
      return null;
    }
    String count =
        String.format(
            Locale.ROOT,
            failures.lately() == 1
                ? "%,d request of readers failed in the last ten minutes"
                : "%,d requests of readers failed in the last ten minutes",
            failures.lately());
    return failures.errno() == null
        ? count
        : "%s, the last at %s: %s of %s: %s"
            .formatted(
                count,
                failures.time(),
                failures.operation(),
                failures.path() == null ? "an unknown path" : "/" + failures.path(),
                failures.errno());
  }

  private static String kept(long seconds) {
    return "kept without a mount point for another " + TimeSpan.format(Duration.ofSeconds(seconds));
  }

  static String title(StatusReport report) {
    MountReport.Detached detached = report.mount().detached();
    return report.mount().source()
        + " on "
        + report.mount().mountpoint()
        + (detached == null ? "" : ", detached: " + text(detached))
        + (report.mount().keptSeconds() == null ? "" : ", " + kept(report.mount().keptSeconds()));
  }

  /**
   * The count may be 0, because the command sees neither other users' processes nor working
   * directories.
   */
  private static String text(MountReport.Detached detached) {
    Integer files = detached.openFiles();
    return files == null || files == 0
        ? "still in use"
        : String.format(
            Locale.ROOT, files == 1 ? "%,d file still open" : "%,d files still open", files);
  }

  /** Null if nothing was read. */
  private static @Nullable String origins(StatusReport report, RecentReport recent) {
    if (recent.bytes() <= 0) {
      return null;
    }
    Map<String, Long> parts = new LinkedHashMap<>();
    recent.tiers().forEach(tier -> parts.merge(tier.kind(), tier.bytes(), Long::sum));
    parts.put("copies that the kernel reads itself", recent.leftToKernel());
    long atSource = recent.sourceLeftToKernel() == null ? 0 : recent.sourceLeftToKernel();
    parts.put("the source's files that the kernel reads itself", atSource);
    parts.put("just copied", recent.fetched());
    parts.put(others(report), recent.fromPeers());
    parts.put("the source", recent.fromSource());
    // An upper bound: each open of a file that the kernel reads itself counts as a whole read.
    String atMost = recent.leftToKernel() + atSource > 0 ? "at most " : "";
    return atMost + ByteSize.format(recent.bytes()) + ": " + shares(parts);
  }

  /** The name of origins other than tiers and the source. */
  private static String others(StatusReport report) {
    if (report.dataset().nodeCache() == null) {
      return report.cluster() == null ? "copies of other jobs" : "peers";
    }
    return report.cluster() == null ? "the node's cache" : "peers and the node's cache";
  }

  private static String shares(Map<String, Long> parts) {
    List<Integer> percents = Percents.of(List.copyOf(parts.values()));
    List<String> words = new ArrayList<>();
    int i = 0;
    for (Map.Entry<String, Long> part : parts.entrySet()) {
      int percent = percents.get(i++);
      if (part.getValue() > 0) {
        words.add((percent == 0 ? "less than 1" : percent) + " % " + part.getKey());
      }
    }
    return String.join(", ", words);
  }

  /** Null if the daemon does not report it. */
  private static @Nullable String source(StatusReport report) {
    List<String> parts = new ArrayList<>();
    if (report.source().sourceAbsence() != null) {
      parts.add(
          "away: "
              + report.source().sourceAbsence()
              + (report.outputs() == null
                  ? "; copies are still served"
                  : "; what this node knows is still served"));
    } else if (report.dataset().recent() != null) {
      parts.add(requests(report.dataset().recent()));
    }
    KernelReport.Waiting waiting = report.kernel().waiting();
    if (waiting != null && waiting.count() > 0) {
      parts.add(
          String.format(
              Locale.ROOT,
              waiting.count() == 1
                  ? "%,d request of a reader has waited for %s"
                  : "%,d requests of readers wait, the longest for %s",
              waiting.count(),
              span((long) waiting.longestSeconds())));
    }
    return parts.isEmpty() ? null : String.join("; ", parts);
  }

  private static String requests(RecentReport recent) {
    Long idle = recent.sourceIdleSeconds();
    if (idle == null) {
      return "not asked since the daemon started";
    }
    if (recent.sourceOperations() == 0 && idle >= MINUTE_SECONDS) {
      return "not asked for " + span(idle);
    }
    return String.format(
            Locale.ROOT,
            recent.sourceOperations() == 1
                ? "%,d operation in the last minute, asked "
                : "%,d operations in the last minute, asked ",
            recent.sourceOperations())
        + (idle == 0 ? "just now" : span(idle) + " ago");
  }

  private static String span(long seconds) {
    return TimeSpan.format(Duration.ofSeconds(seconds));
  }

  private static String room(List<TierReport> tiers) {
    return tiers.isEmpty()
        ? "no tier"
        : tiers.stream().map(StatusHeadline::room).collect(Collectors.joining(", "));
  }

  private static String room(TierReport tier) {
    if (!tier.isUp()) {
      return tier.kind() + " failed";
    }
    long available = tier.availableBytes();
    String room =
        "%s %s of %s"
            .formatted(
                tier.kind(),
                available == 0 ? "none" : ByteSize.format(available),
                ByteSize.format(tier.capacityBytes()));
    if (!tier.state().equals("on")) {
      return room + " (" + tier.state() + ")";
    }
    return available < tier.capacityBytes() - tier.usedBytes()
        ? room + " (its disk has no more beyond --keep-free)"
        : room;
  }

  private void add(String name, @Nullable String value) {
    if (value != null) {
      lines.add(String.format(Locale.ROOT, "  %-12s %s", name, value));
    }
  }
}
