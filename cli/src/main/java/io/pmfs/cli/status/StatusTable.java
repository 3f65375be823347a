package io.pmfs.cli.status;

import io.pmfs.cli.tasks.DrainProgress;
import io.pmfs.cli.tasks.TaskLines;
import io.pmfs.daemon.report.ClusterReport;
import io.pmfs.daemon.report.DaemonReport;
import io.pmfs.daemon.report.DatasetReport;
import io.pmfs.daemon.report.KernelReport;
import io.pmfs.daemon.report.MissingNode;
import io.pmfs.daemon.report.MountReport;
import io.pmfs.daemon.report.NodeCacheReport;
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
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** A {@link StatusReport} for users: the headline, and all details below it. */
final class StatusTable {
  /** A limit, because a cluster may have hundreds of nodes. */
  private static final int MOST_MEMBERS = 16;

  private static final int MOST_OPERATIONS = 4;

  private static final int MOST_FAILURES = 10;

  private final List<String> lines = new ArrayList<>();

  private StatusTable() {}

  static String of(StatusReport report) {
    StatusTable table = new StatusTable();
    if (!report.hasDaemon()) {
      table.lines.addAll(StatusHeadline.of(report));
      table.add("log", report.daemon().logFile());
      return String.join("\n", table.lines);
    }
    table.head(report);
    OutputsReport outputs = report.outputs();
    if (outputs != null) {
      table.outputs(report, outputs);
      return String.join("\n", table.lines);
    }
    table.counts(report);
    table.cluster(report);
    table.task(report.task());
    return String.join("\n", table.lines);
  }

  /** One mount with details, several without, so that a failing one stands out. */
  static String of(List<StatusReport> reports) {
    if (reports.size() == 1) {
      return of(reports.get(0));
    }
    return Stream.concat(
            reports.stream().map(report -> String.join("\n", StatusHeadline.of(report))),
            reports.stream().limit(1).map(any -> "pmfs status MOUNTPOINT shows more of a mount."))
        .collect(Collectors.joining("\n\n"));
  }

  private void head(StatusReport report) {
    lines.addAll(StatusHeadline.of(report));
    tiers(report.dataset().tiers());
    lines.add("");
    add(
        "daemon",
        "pid %d of user %s, up %s"
            .formatted(
                report.daemon().pid(),
                report.daemon().user(),
                TimeSpan.format(Duration.ofSeconds(report.daemon().uptimeSeconds()))));
    List<MountReport.Holder> holders = report.mount().holders();
    for (MountReport.Holder holder : holders == null ? List.<MountReport.Holder>of() : holders) {
      add("mounted on", text(holder));
    }
    add(
        "reading",
        report.bridge().readMode()
            + " over "
            + report.bridge().bridge()
            + because(report.bridge().readModeReason()));
    add("bridge", report.bridge().bridge() + because(report.bridge().bridgeReason()));
    add("log", report.daemon().logFile());
    add("state", report.state().stateDirectory());
    add("not recorded", report.state().stateFailure());
    add("trouble", report.daemon().threadFailure());
    MountReport.Detached detached = report.mount().detached();
    add(
        "open by",
        detached == null || detached.openBy().isEmpty()
            ? null
            : String.join(", ", detached.openBy()));
    add("metrics", report.daemon().metrics());
    KernelReport.AccessLog accessLog = report.kernel().accessLog();
    add("access log", accessLog == null ? null : text(accessLog));
    DaemonReport.Memory memory = report.daemon().memory();
    add("memory", memory == null ? null : text(memory));
  }

  private static String text(MountReport.Holder holder) {
    return holder.mountpoint()
        + (holder.job() == null ? "" : ", job " + holder.job())
        + (holder.user() == null ? "" : ", by user " + holder.user())
        + (holder.pid() == null ? "" : " (pid " + holder.pid() + ")")
        + (holder.since() == null ? "" : ", since " + holder.since());
  }

  private void outputs(StatusReport report, OutputsReport outputs) {
    add(
        outputs.isCurrent() ? "drained" : "was drained",
        String.format(
            Locale.ROOT,
            "%,d changes, %s; %s/s in the last ten seconds",
            outputs.drainedChanges(),
            ByteSize.format(outputs.drainedBytes()),
            ByteSize.format(outputs.bytesPerSecond())));
    add(
        outputs.isCurrent() ? "waiting" : "was waiting",
        String.format(
            Locale.ROOT,
            "%,d changes, %s in %,d files, the oldest for %s",
            outputs.waitingChanges(),
            ByteSize.format(outputs.dirtyBytes()),
            outputs.dirtyFiles(),
            TimeSpan.format(Duration.ofSeconds(outputs.oldestAgeSeconds()))));
    add("in tiers", ByteSize.format(outputs.localBytes()));
    NodeCacheReport cache = report.dataset().nodeCache();
    add("node cache", cache == null ? null : text(cache));
    RequestReport requests = report.kernel().requests();
    add("requests", requests == null ? null : text(requests));
    add("unanswered", waiting(report.kernel().waiting()));
    nodes(report.cluster());
    OutputsReport.Away away = outputs.away();
    if (away != null) {
      add("away", DrainProgress.text(away));
    }
    outputs.failures().stream()
        .limit(MOST_FAILURES)
        .forEach(failure -> add("refused", failure.path() + ": " + failure.reason()));
  }

  /** The nodes of a writable mount, one of which owns all names. */
  private void nodes(@Nullable ClusterReport cluster) {
    for (ClusterReport.MemberReport member :
        cluster == null ? List.<ClusterReport.MemberReport>of() : cluster.members()) {
      add(
          "node",
          "%s at %s:%d%s%s"
              .formatted(
                  member.node(),
                  member.address(),
                  member.port(),
                  member.share() > 0 ? ", owns all names" : "",
                  member.self() ? ", this node" : ""));
    }
    if (cluster != null) {
      missing(cluster);
    }
  }

  private static String text(KernelReport.AccessLog accessLog) {
    return accessLog.missing() == 0
        ? accessLog.file()
        : String.format(
            Locale.ROOT, "%s (%,d requests are missing)", accessLog.file(), accessLog.missing());
  }

  static String text(DaemonReport.Memory memory) {
    return "%s resident, heap %s of %s"
        .formatted(
            ByteSize.format(memory.residentBytes()),
            ByteSize.format(memory.heapUsedBytes()),
            ByteSize.format(memory.heapMaxBytes()));
  }

  /** A row for each tier, and below it what else there is to say of it. */
  private void tiers(List<TierReport> tiers) {
    if (tiers.isEmpty()) {
      return;
    }
    lines.add("");
    lines.add(row("", "kind", "state", "used", "capacity", "copies", "hits", "place"));
    for (int i = 0; i < tiers.size(); i++) {
      TierReport tier = tiers.get(i);
      lines.add(
          row(
              "tier " + (i + 1),
              tier.kind(),
              tier.state(),
              ByteSize.format(tier.usedBytes()),
              ByteSize.format(tier.capacityBytes()),
              String.format(Locale.ROOT, "%,d", tier.copies()),
              String.format(Locale.ROOT, "%,d", tier.hits()),
              tier.path()));
      String notes =
          Stream.of(tier.reason(), content(tier), dax(tier.dax()))
              .filter(note -> !note.isEmpty())
              .collect(Collectors.joining("; "));
      add("", notes.isEmpty() ? null : notes);
    }
  }

  private static String row(Object... cells) {
    return PathText.printable(
        String.format(Locale.ROOT, "  %-12s %-4s %-10s %9s %9s %12s %12s  %s", cells));
  }

  private static String dax(TierReport.Dax dax) {
    if (dax.equals(TierReport.Dax.NONE)) {
      return "";
    }
    return dax.real() ? "DAX" + because(dax.reason()) : dax.reason();
  }

  /** The origins of bytes that no tier has. */
  private static String beyondTiers(StatusReport report) {
    return (report.cluster() == null ? "" : "peers or ")
        + (report.dataset().nodeCache() == null ? "" : "the node's cache or ")
        + "the source";
  }

  private static String text(NodeCacheReport cache) {
    return String.format(
            Locale.ROOT,
            "%s read from it by the daemon; %,d requests, %,d of them without a copy",
            ByteSize.format(cache.bytes()),
            cache.asked(),
            cache.refused())
        + (cache.problem() == null ? "" : "; it does not answer: " + cache.problem());
  }

  /** The effect of compression, if any. */
  private static String content(TierReport tier) {
    if (tier.compression().equals("none") && tier.contentBytes() <= tier.usedBytes()) {
      return "";
    }
    String held =
        tier.contentBytes() < 0
            ? "unknown content"
            : ByteSize.format(tier.contentBytes()) + " of content" + ratio(tier);
    return held + ", " + tier.compression();
  }

  /**
   * Empty while the size of the copies is unknown, for example during the count after an unclean
   * stop.
   */
  static String ratio(TierReport tier) {
    return tier.usedBytes() <= 0
        ? ""
        : String.format(
            Locale.ROOT, " (%.2f to 1)", tier.contentBytes() / (double) tier.usedBytes());
  }

  private void counts(StatusReport report) {
    DatasetReport.Reads reads = report.dataset().reads();
    add(
        "reads",
        String.format(
            Locale.ROOT,
            "%,d requests, %s, %.1f %% from tiers (%s), %s just fetched, %s %s, %,d errors",
            reads.requests(),
            ByteSize.format(reads.bytes()),
            reads.hitRatio() * 100,
            ByteSize.format(reads.fromTiers()),
            ByteSize.format(reads.fetched()),
            ByteSize.format(reads.fromSource()),
            "from " + beyondTiers(report),
            reads.errors()));
    RequestReport requests = report.kernel().requests();
    add("requests", requests == null ? null : text(requests));
    add("waiting", waiting(report.kernel().waiting()));
    add("numbers", numbers(report));
    DatasetReport.Staging s = report.dataset().staging();
    add(
        "staging",
        String.format(
            Locale.ROOT,
            "%s, %,d active, %,d queued, %,d done, %,d failed, %,d dropped, %,d without room,"
                + " %,d evicted",
            s.idle() ? "idle" : "busy",
            s.active(),
            s.queued(),
            s.completed(),
            s.failed(),
            s.dropped(),
            s.skippedNoRoom(),
            s.evicted()));
    add(
        "checks",
        String.format(
            Locale.ROOT, "%,d copies verified, %,d mismatches", s.verified(), s.mismatches()));
    SourceReport.Operations source = report.source().sourceOperations();
    add(
        "source ops",
        String.format(
            Locale.ROOT,
            "%,d operations: %,d opens, %,d reads (%s), %,d stats, %,d lists, %,d readlinks, %,d"
                + " xattrs, %,d statfs, %,d seeks",
            source.total(),
            source.opens(),
            source.reads(),
            ByteSize.format(source.bytes()),
            source.stats(),
            source.lists(),
            source.readlinks(),
            source.xattrs(),
            source.statfs(),
            source.seeks()));
  }

  /** The most frequent operations. */
  private static @Nullable String text(RequestReport requests) {
    String text =
        requests.operations().stream()
            .sorted(Comparator.comparing(RequestReport.Operation::count).reversed())
            .limit(MOST_OPERATIONS)
            .map(
                o ->
                    String.format(
                        Locale.ROOT,
                        "%s %,d (p50 %.2f ms, p99 %.2f ms)",
                        o.operation(),
                        o.count(),
                        o.p50Millis(),
                        o.p99Millis()))
            .collect(Collectors.joining(", "));
    return text.isEmpty() ? null : text;
  }

  /** A message about unstable inode numbers of the source; null if they seem stable. */
  private static @Nullable String numbers(StatusReport report) {
    Long renumbered = report.source().renumberedFiles();
    if (renumbered == null || renumbered == 0) {
      return null;
    }
    return String.format(
        Locale.ROOT,
        "they change at the source (%,d changes seen), so files are identified by path, size and"
            + " times",
        renumbered);
  }

  public static @Nullable String waiting(KernelReport.@Nullable Waiting waiting) {
    if (waiting == null || waiting.count() == 0) {
      return null;
    }
    String path = waiting.path();
    return String.format(
        Locale.ROOT,
        waiting.count() == 1
            ? "%,d request, for %s: %s%s by %s"
            : "%,d requests, the longest for %s: %s%s by %s",
        waiting.count(),
        TimeSpan.format(Duration.ofSeconds((long) waiting.longestSeconds())),
        waiting.operation(),
        path == null ? "" : path.isEmpty() ? " of ." : " of " + path,
        waiting.pid() == 0 ? "the kernel" : "pid " + waiting.pid());
  }

  private void cluster(StatusReport report) {
    ClusterReport cluster = report.cluster();
    if (cluster == null) {
      return;
    }
    add(
        "cluster",
        String.format(
            Locale.ROOT,
            "%s: %s, owns %.1f %% of the files, replicas %d, remote copies %s",
            cluster.name(),
            size(cluster),
            cluster.share() * 100,
            cluster.replicas(),
            cluster.remoteCopies()));
    add(
        "contents",
        "%s from local tiers, %s from peers, %s from the source"
            .formatted(
                ByteSize.format(report.dataset().reads().fromTiers()),
                ByteSize.format(cluster.bytesFromPeers()),
                ByteSize.format(report.source().sourceOperations().bytes())));
    add(
        "peers",
        String.format(
            Locale.ROOT,
            "%,d answers, %,d misses, %.1f %% hits",
            cluster.answersOfPeers(),
            cluster.missesOfPeers(),
            cluster.peerHitRatio() * 100));
    ClusterReport.Served served = cluster.served();
    add(
        "served",
        String.format(
            Locale.ROOT,
            "%,d requests, %s, %s refused, %,d failed, %,d active, longest wait %,d ms",
            served.requests(),
            ByteSize.format(served.bytes()),
            refused(served),
            served.failed(),
            served.active(),
            served.longestWaitMillis()));
    members(cluster.members());
    missing(cluster);
  }

  private static String size(ClusterReport cluster) {
    if (!cluster.absent().isEmpty()) {
      return "%d of %d expected nodes".formatted(cluster.size(), cluster.expected());
    }
    return cluster.size() == 1 ? "this node alone" : cluster.size() + " nodes";
  }

  private void missing(ClusterReport cluster) {
    List<MissingNode> missing = cluster.absent();
    missing.stream()
        .limit(MOST_MEMBERS)
        .forEach(
            one ->
                add(
                    "missing",
                    one.node()
                        + (one.address() == null || one.address().equals(one.node())
                            ? " "
                            : " at " + one.address() + " ")
                        + one.sinceWhen()));
    if (missing.size() > MOST_MEMBERS) {
      add(
          "",
          String.format(
              Locale.ROOT,
              "and %,d more missing: --json lists all",
              missing.size() - MOST_MEMBERS));
    }
  }

  /** Refusals by reason: {@code 3 (421: 2, slow: 1)}. */
  private static String refused(ClusterReport.Served served) {
    return String.format(Locale.ROOT, "%,d", served.allRefused())
        + because(
            String.join(
                ", ",
                served.refused().entrySet().stream()
                    .map(e -> e.getKey() + ": " + e.getValue())
                    .toList()));
  }

  private void members(List<ClusterReport.MemberReport> members) {
    // This node first, then the suspected ones.
    members.stream()
        .sorted(
            Comparator.comparing((ClusterReport.MemberReport m) -> !m.self())
                .thenComparing(m -> !m.suspected())
                .thenComparing(ClusterReport.MemberReport::node))
        .limit(MOST_MEMBERS)
        .forEach(member -> add("node", text(member)));
    if (members.size() > MOST_MEMBERS) {
      add(
          "",
          String.format(
              Locale.ROOT, "and %,d more: --json lists all", members.size() - MOST_MEMBERS));
    }
  }

  private static String text(ClusterReport.MemberReport member) {
    String place =
        String.format(
            Locale.ROOT,
            "%s at %s:%d, %.1f %% of the files",
            member.node(),
            member.address(),
            member.port(),
            member.share() * 100);
    if (member.self()) {
      return place + ", this node";
    }
    return place
        + String.format(
            Locale.ROOT,
            ", %,d requests, %s, %,d failed, p50 %.1f ms, p99 %.1f ms%s",
            member.requests(),
            ByteSize.format(member.bytes()),
            member.failures(),
            member.medianMillis(),
            member.slowestPercentMillis(),
            member.suspected() ? ", suspected: gets no requests for now" : "");
  }

  private void task(@Nullable TaskReport task) {
    if (task != null) {
      add(
          task.isRunning() ? "task" : "last task",
          task.isRunning() ? TaskLines.text(task) : TaskSummary.of(task).text());
    }
  }

  private static String because(@Nullable String reason) {
    return reason == null || reason.isEmpty() ? "" : " (" + reason + ")";
  }

  private void add(String name, @Nullable String value) {
    if (value != null) {
      // Root also sees the reports of users' daemons.
      String printable = PathText.printable(value);
      lines.add(String.format(Locale.ROOT, "  %-12s %s", name, printable));
    }
  }
}
