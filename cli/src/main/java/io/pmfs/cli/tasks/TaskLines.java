package io.pmfs.cli.tasks;

import io.pmfs.daemon.report.TaskReport;
import io.pmfs.machine.ByteSize;
import io.pmfs.machine.TimeSpan;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Locale;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** Shows a plain line every few seconds, none for short tasks. */
public final class TaskLines implements TaskDisplay {
  private static final Duration FIRST = Duration.ofSeconds(2);
  private static final Duration NEXT = Duration.ofSeconds(5);

  private final Consumer<String> out;
  private final InstantSource clock;
  private @Nullable Instant due;

  TaskLines(Consumer<String> out, InstantSource clock) {
    this.out = out;
    this.clock = clock;
  }

  @Override
  public void show(TaskReport report) {
    Instant now = clock.instant();
    if (due == null) {
      due = now.plus(FIRST);
    } else if (!now.isBefore(due) && report.isRunning()) {
      due = now.plus(NEXT);
      out.accept(text(report));
    }
  }

  /** The progress: files, bytes, rate, time left, directory. */
  public static String text(TaskReport report) {
    String directory = report.directory().isEmpty() ? "" : ", in " + report.directory();
    return report.activity() + ": " + figures(report) + directory;
  }

  /** Files, bytes, rate and time left. */
  static String figures(TaskReport report) {
    StringBuilder text = new StringBuilder();
    text.append(
        String.format(
            Locale.ROOT,
            "%,d of %,d%s files",
            report.files(),
            report.totalFiles(),
            report.totalsAreFinal() ? "" : " or more"));
    if (report.countsBytes() && report.elapsedMs() > 0) {
      text.append(
          ", %s of %s, %s/s"
              .formatted(
                  ByteSize.format(report.bytes()),
                  ByteSize.format(report.totalBytes()),
                  ByteSize.format(bytesPerSecond(report))));
    }
    String left = timeLeft(report);
    return left.isEmpty() ? text.toString() : text + ", " + left + " left";
  }

  static long bytesPerSecond(TaskReport report) {
    return (long) (report.bytes() * 1000.0 / Math.max(1, report.elapsedMs()));
  }

  /** The estimated time to the end; empty if it is not known. */
  static String timeLeft(TaskReport report) {
    double fraction = report.fraction();
    if (!report.totalsAreFinal() || fraction <= 0) {
      return "";
    }
    return TimeSpan.format(
        Duration.ofMillis((long) (report.elapsedMs() * (1 - fraction) / fraction)));
  }

  @Override
  public void close() {}
}
