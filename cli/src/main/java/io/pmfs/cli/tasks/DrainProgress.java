package io.pmfs.cli.tasks;

import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.report.OutputsReport;
import io.pmfs.machine.ByteSize;
import io.pmfs.machine.TimeSpan;
import io.pmfs.metadata.PathText;
import java.io.PrintStream;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * Shows how much is not at the source yet: on a terminal in one updated line, elsewhere in a line
 * from time to time. Starts after a short delay. Not thread-safe.
 */
public final class DrainProgress implements AutoCloseable {
  private static final Duration SILENT = Duration.ofSeconds(1);
  private static final Duration BETWEEN_LINES = Duration.ofSeconds(30);

  private final Invocation invocation;
  private final @Nullable Integer columns;
  private final long begin = System.nanoTime();
  private long lastLine = begin;
  private boolean isPainted;

  DrainProgress(Invocation invocation) {
    this.invocation = invocation;
    String width = invocation.surroundings().variable(TaskDisplay.COLUMNS);
    this.columns = width != null && width.matches("[1-9]\\d{0,3}") ? Integer.valueOf(width) : null;
  }

  void show(OutputsReport outputs) {
    long now = System.nanoTime();
    Integer width = columns;
    if (now - begin < SILENT.toNanos()) {
      return;
    }
    if (width != null) {
      paint(text(outputs), width - 1);
    } else if (now - lastLine >= BETWEEN_LINES.toNanos()) {
      lastLine = now;
      invocation.warn(text(outputs));
    }
  }

  private void paint(String text, int width) {
    PrintStream terminal = invocation.err();
    String line = PathText.printable(text);
    String cut = line.length() > width ? line.substring(0, width) : line;
    terminal.print("\r" + cut + " ".repeat(width - cut.length()));
    terminal.flush();
    isPainted = true;
  }

  /** How much is not at the source yet, in words. */
  public static String text(OutputsReport outputs) {
    OutputsReport.Away away = outputs.away();
    if (away != null && away.owner()) {
      return away.who() + ", so it is unknown what is not at the source yet; " + away.remedy();
    }
    StringBuilder text = new StringBuilder(left(outputs));
    if (outputs.waitingChanges() > 0) {
      text.append(
          ", the oldest for "
              + TimeSpan.format(Duration.ofSeconds(outputs.oldestAgeSeconds()))
              + ", "
              + ByteSize.format(outputs.bytesPerSecond())
              + "/s");
    }
    if (outputs.refused() > 0) {
      text.append(String.format(Locale.ROOT, ", %,d refused by the source", outputs.refused()));
    }
    if (away != null) {
      text.append("; " + text(away));
    }
    return text.toString();
  }

  /** The unreachable node, what waits for it, and a remedy. */
  public static String text(OutputsReport.Away away) {
    if (away.owner()) {
      return away.who() + "; " + away.remedy();
    }
    return String.format(
        Locale.ROOT,
        away.changes() == 1
            ? "%s: %s waits for it; %s"
            : "%s: %s and everything that depends on it wait; %s",
        away.who(),
        away.path() == null ? "a file" : away.path(),
        away.remedy());
  }

  private static String left(OutputsReport outputs) {
    return String.format(
        Locale.ROOT,
        outputs.waitingChanges() == 1
            ? "%,d change with %s is not at the source yet"
            : "%,d changes with %s are not at the source yet",
        outputs.waitingChanges(),
        ByteSize.format(outputs.dirtyBytes()));
  }

  /** Lines about failures and pending paths, without control characters. */
  public static List<String> lines(OutputsReport outputs, List<String> waiting) {
    List<String> lines = new java.util.ArrayList<>();
    outputs.failures().forEach(failure -> lines.add(failure.path() + ": " + failure.reason()));
    OutputsReport.Away away = outputs.away();
    if (away != null && away.path() != null) {
      lines.add(0, away.path() + ": " + away.who());
    }
    waiting.stream()
        .filter(path -> away == null || !path.equals(away.path()))
        .filter(path -> outputs.failures().stream().noneMatch(f -> f.path().equals(path)))
        .forEach(path -> lines.add(path + ": not at the source yet"));
    return lines.stream().map(line -> PathText.printable(line)).toList();
  }

  @Override
  public void close() {
    if (isPainted && columns != null) {
      invocation.err().print("\r" + " ".repeat(columns - 1) + "\r");
      invocation.err().flush();
    }
  }
}
