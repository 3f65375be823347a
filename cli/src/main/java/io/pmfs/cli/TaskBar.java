package io.pmfs.cli;

import io.pmfs.daemon.report.TaskReport;
import java.io.PrintStream;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Locale;
import me.tongfei.progressbar.ConsoleProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;
import org.jspecify.annotations.Nullable;

/** A progress bar, redrawn in one line of a terminal; none for a short task. */
final class TaskBar implements TaskDisplay {
  private static final Duration SHORT = Duration.ofSeconds(1);
  private static final int REDRAW_MS = 200;
  private static final long UNKNOWN = -1;

  private final InstantSource clock;
  private @Nullable Instant due;
  private @Nullable ProgressBar bar;
  private final Line line;

  TaskBar(PrintStream terminal, int columns, InstantSource clock) {
    this.line = new Line(terminal, columns);
    this.clock = clock;
  }

  @Override
  public void show(TaskReport report) {
    Instant now = clock.instant();
    if (due == null) {
      due = now.plus(SHORT);
    }
    if (bar == null && !now.isBefore(due) && report.isRunning()) {
      bar = draw(report);
    }
    ProgressBar shown = bar;
    if (shown != null) {
      boolean bytes = report.countsBytes();
      long total = bytes ? report.totalBytes() : report.totalFiles();
      shown.maxHint(report.totalsAreFinal() ? total : UNKNOWN);
      shown.stepTo(bytes ? report.bytes() : report.files());
      shown.setExtraMessage(message(report));
    }
  }

  private ProgressBar draw(TaskReport report) {
    boolean large = report.totalBytes() >= 10L << 30;
    ProgressBarBuilder builder =
        new ProgressBarBuilder()
            .setTaskName(report.activity())
            .setStyle(ProgressBarStyle.UNICODE_BLOCK)
            .setUpdateIntervalMillis(REDRAW_MS)
            .setConsumer(line)
            .startsFrom(0, report.elapsed())
            .showSpeed();
    return report.countsBytes()
        ? builder.setUnit(large ? " GiB" : " MiB", large ? 1 << 30 : 1 << 20).build()
        : builder.setUnit(" files", 1).build();
  }

  private static String message(TaskReport report) {
    String whole = report.totalsAreFinal() ? " files" : " or more files";
    String files = report.countsBytes() ? " %,d of %,d" + whole : "";
    // The daemon may be another user's.
    return (String.format(Locale.ROOT, files, report.files(), report.totalFiles())
            + " "
            + report.directory())
        .replaceAll("\\p{Cntrl}", "?");
  }

  @Override
  public void close() {
    ProgressBar shown = bar;
    if (shown != null) {
      shown.close();
      line.end();
    }
  }

  /** The bar's line. The bar draws itself from another thread, so only {@link #end} ends it. */
  private static final class Line extends ConsoleProgressBarConsumer {
    private boolean ended; // GUARDED_BY(this)

    Line(PrintStream terminal, int columns) {
      super(terminal, columns);
    }

    @Override
    public synchronized void accept(String drawn) {
      if (!ended) {
        super.accept(drawn);
      }
    }

    @Override
    public void close() {}

    synchronized void end() {
      ended = true;
      super.close();
    }
  }
}
