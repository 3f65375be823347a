package io.pmfs.cli;

import io.pmfs.daemon.report.NodesReport;
import io.pmfs.metadata.PathText;
import io.pmfs.settings.ByteSize;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** A {@link NodesReport} for people: a line for each node, and the sum. */
final class NodesTable {
  private NodesTable() {}

  static String of(NodesReport report) {
    List<String> lines = new ArrayList<>();
    lines.add("%s, cluster %s".formatted(report.mountpoint(), report.cluster()));
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
      String name = node.node() + (node.address().isEmpty() ? "" : " " + node.address());
      lines.add(
          counts == null
              ? "  %-28s no answer: %s".formatted(name, node.error())
              : line(name, counts));
    }
    lines.add(line("sum", report.sum()));
    return String.join("\n", lines.stream().map(line -> PathText.printable(line)).toList());
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
