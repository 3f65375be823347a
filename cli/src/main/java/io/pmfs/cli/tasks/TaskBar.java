package io.pmfs.cli.tasks;

import io.pmfs.daemon.report.TaskReport;
import java.io.PrintStream;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Objects;
import me.tongfei.progressbar.ConsoleProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import org.jspecify.annotations.Nullable;

/** A progress bar in one line of a terminal, not shown for short tasks. */
final class TaskBar implements TaskDisplay {
  private static final Duration SHORT = Duration.ofSeconds(1);
  private static final int REDRAW_MS = 200;

  private final InstantSource clock;
  private @Nullable Instant due;
  private @Nullable ProgressBar bar;
  private volatile @Nullable TaskReport latest; // the bar's thread draws it
  private final Line line;

  TaskBar(PrintStream terminal, int columns, InstantSource clock) {
    this.line = new Line(terminal, columns - 1); // in the last column the line would wrap
    this.clock = clock;
  }

  @Override
  public void show(TaskReport report) {
    Instant now = clock.instant();
    if (due == null) {
      due = now.plus(SHORT);
    }
    latest = report;
    if (bar == null && !now.isBefore(due) && report.isRunning()) {
      bar = draw(report);
    }
  }

  private ProgressBar draw(TaskReport report) {
    return new ProgressBarBuilder()
        .setRenderer((state, columns) -> ProgressLine.of(Objects.requireNonNull(latest), columns))
        .setUpdateIntervalMillis(REDRAW_MS)
        .setConsumer(line)
        .startsFrom(0, report.elapsed())
        .build();
  }

  @Override
  public void close() {
    ProgressBar shown = bar;
    if (shown != null) {
      shown.close();
      line.end();
    }
  }

  /** The bar's line. The bar is drawn by another thread, so only {@link #end} ends it. */
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
