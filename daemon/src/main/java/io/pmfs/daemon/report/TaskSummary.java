package io.pmfs.daemon.report;

import io.pmfs.machine.ByteSize;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.TimeSpan;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * The result of a task as a line for users and as an exit status.
 *
 * @param text the line, without the name of the dataset or path
 */
public record TaskSummary(String text, int exitStatus) {

  public static TaskSummary of(TaskReport report) {
    List<String> parts = new ArrayList<>();
    add(parts, report.done(), done(report));
    add(parts, report.present(), present(report));
    add(parts, report.noRoom(), "%s without room");
    add(parts, report.failed(), failed(report));
    if (parts.isEmpty()) {
      parts.add("nothing was done");
    }
    parts.set(0, parts.get(0) + nodes(report));
    return new TaskSummary(
        beginning(report) + String.join(", ", parts) + "; " + extent(report), exitStatus(report));
  }

  private static void add(List<String> parts, long count, String words) {
    if (count > 0) {
      parts.add(String.format(Locale.ROOT, words, files(count)));
    }
  }

  private static String beginning(TaskReport report) {
    return switch (report.state()) {
      case "failed" -> report.activity() + " failed: " + report.reason() + "; ";
      case "cancelled" -> report.activity() + " was cancelled: ";
      default -> "";
    };
  }

  private static String done(TaskReport report) {
    return switch (report.task()) {
      case "metadata" -> "imported names and attributes of %s";
      case "prefetch" -> "prefetched %s";
      case "verify" -> "verified %s";
      case "evict" -> "dropped the copies of %s";
      default -> "staged %s";
    };
  }

  private static String nodes(TaskReport report) {
    return report.nodes() > 1 ? String.format(Locale.ROOT, " on %,d nodes", report.nodes()) : "";
  }

  private static String present(TaskReport report) {
    return switch (report.task()) {
      case "check" -> "%s in the tiers";
      case "verify", "evict" -> "%s without a copy";
      default -> "%s already there";
    };
  }

  private static String failed(TaskReport report) {
    return switch (report.task()) {
      case "check" -> "%s missing or stale";
      case "verify" -> "%s bad or unverifiable";
      default -> "%s failed";
    };
  }

  /** Bytes are known only for all files together. */
  private static String extent(TaskReport report) {
    String extent =
        String.format(
            Locale.ROOT,
            "%s of %s in %s",
            files(report.files()),
            ByteSize.format(report.bytes()),
            time(report.elapsed()));
    boolean allMoved = report.countsBytes() && report.done() == report.files();
    return allMoved && report.elapsedMs() > 0
        ? extent + " (" + ByteSize.format(report.bytes() * 1000 / report.elapsedMs()) + "/s)"
        : extent;
  }

  private static String files(long count) {
    return String.format(Locale.ROOT, count == 1 ? "%,d file" : "%,d files", count);
  }

  private static String time(Duration elapsed) {
    return elapsed.toSeconds() < 10
        ? String.format(Locale.ROOT, "%.1fs", elapsed.toMillis() / 1000.0)
        : TimeSpan.format(elapsed);
  }

  private static int exitStatus(TaskReport report) {
    if (report.state().equals("failed")) {
      return ExitStatus.FAILED;
    }
    return report.complete() ? ExitStatus.DONE : ExitStatus.PARTLY;
  }
}
