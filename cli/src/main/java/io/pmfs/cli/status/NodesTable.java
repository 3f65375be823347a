package io.pmfs.cli.status;

import io.pmfs.cli.tasks.DrainProgress;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.OutputsReport;
import io.pmfs.machine.ByteSize;
import io.pmfs.metadata.PathText;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Stream;

/** A {@link NodesReport} for users: a line for each node, and the sum. */
final class NodesTable {
  private NodesTable() {}

  static String of(NodesReport report) {
    List<String> lines = new ArrayList<>();
    lines.add("%s, cluster %s".formatted(report.mountpoint(), report.cluster()));
    if (report.isWritable()) {
      writable(report, lines);
    } else {
      dataset(report, lines);
    }
    report
        .absent()
        .forEach(one -> lines.add("  %-28s missing %s".formatted(one.node(), one.sinceWhen())));
    if (report.isWritable()) {
      lines.add("  the owner of all names is " + report.owner());
      away(report).ifPresent(away -> lines.add("  " + DrainProgress.text(away)));
    } else {
      lines.add(line("sum", report.sum()));
    }
    String absence = report.absence();
    if (absence != null) {
      lines.add("  " + absence);
    }
    return String.join("\n", lines.stream().map(line -> PathText.printable(line)).toList());
  }

  /** The node that changes wait for, according to any of the nodes. */
  public static Optional<OutputsReport.Away> away(NodesReport report) {
    return report.nodes().stream()
        .flatMap(node -> Stream.ofNullable(node.outputs()))
        .flatMap(outputs -> Stream.ofNullable(outputs.away()))
        .findFirst();
  }

  private static void dataset(NodesReport report, List<String> lines) {
    lines.add(
        line(
            "node",
            "share",
            "copies",
            "held",
            "read",
            "tiers",
            "peers",
            "source",
            "source ops",
            "served"));
    for (NodesReport.NodeReport node : report.nodes()) {
      NodesReport.Counts counts = node.counts();
      lines.add(counts == null ? silent(node) : line(name(node), counts));
    }
  }

  /** The owner knows what is not at the source, each node the use of its tiers. */
  private static void writable(NodesReport report, List<String> lines) {
    lines.add(line("node", "role", "waiting", "not there", "refused", "in tiers"));
    for (NodesReport.NodeReport node : report.nodes()) {
      OutputsReport outputs = node.outputs();
      if (outputs == null) {
        lines.add(silent(node));
      } else if (node.owner()) {
        lines.add(
            line(
                name(node),
                "owner",
                String.format(Locale.ROOT, "%,d", outputs.waitingChanges()),
                ByteSize.format(outputs.dirtyBytes()),
                String.format(Locale.ROOT, "%,d", outputs.refused()),
                ByteSize.format(outputs.localBytes())));
      } else {
        lines.add(line(name(node), "writer", "", "", "", ByteSize.format(outputs.localBytes())));
      }
    }
  }

  private static String name(NodesReport.NodeReport node) {
    return node.node() + (node.address().isEmpty() ? "" : " " + node.address());
  }

  private static String silent(NodesReport.NodeReport node) {
    return "  %-28s no answer: %s".formatted(name(node), node.error());
  }

  private static String line(String name, NodesReport.Counts counts) {
    return line(
        name,
        String.format(Locale.ROOT, "%.1f %%", counts.share() * 100),
        String.format(Locale.ROOT, "%,d", counts.copies()),
        ByteSize.format(counts.usedBytes()),
        ByteSize.format(counts.bytesRead()),
        ByteSize.format(counts.bytesFromTiers()),
        ByteSize.format(counts.bytesFromPeers()),
        ByteSize.format(counts.bytesFromSource()),
        String.format(Locale.ROOT, "%,d", counts.sourceOperations()),
        ByteSize.format(counts.bytesServed()));
  }

  private static String line(String name, Object... columns) {
    StringBuilder line = new StringBuilder(String.format(Locale.ROOT, "  %-28s", name));
    for (Object column : columns) {
      line.append(String.format(Locale.ROOT, " %10s", column));
    }
    return line.toString();
  }
}
