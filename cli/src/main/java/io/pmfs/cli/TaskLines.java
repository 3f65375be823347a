package io.pmfs.cli;

import io.pmfs.daemon.report.TaskReport;
import io.pmfs.settings.ByteSize;
import io.pmfs.settings.TimeSpan;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Locale;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** A plain line every few seconds; none for a task that ends sooner. */
final class TaskLines implements TaskDisplay {
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
  static String text(TaskReport report) {
    StringBuilder text = new StringBuilder(report.activity());
    text.append(
        String.format(
            Locale.ROOT,
            ": %,d of %,d%s files",
            report.files(),
            report.totalFiles(),
            report.totalsAreFinal() ? "" : " or more"));
    long millis = report.elapsedMs();
    if (report.countsBytes() && millis > 0) {
      text.append(
          ", %s of %s, %s/s"
              .formatted(
                  ByteSize.format(report.bytes()),
                  ByteSize.format(report.totalBytes()),
                  ByteSize.format((long) (report.bytes() * 1000.0 / millis))));
    }
    double fraction = report.fraction();
    if (report.totalsAreFinal() && fraction > 0) {
      Duration left = Duration.ofMillis((long) (millis * (1 - fraction) / fraction));
      text.append(", ").append(TimeSpan.format(left)).append(" left");
    }
    if (!report.directory().isEmpty()) {
      text.append(", in ").append(report.directory());
    }
    return text.toString();
  }

  @Override
  public void close() {}
}
