package io.pmfs.cli;

import io.pmfs.cli.tasks.TaskDisplay;
import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.report.TaskReport;
import io.pmfs.machine.ExitStatus;
import io.pmfs.pack.PackProgress;
import io.pmfs.pack.PackProgress.Phase;
import java.time.Duration;
import java.time.Instant;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Shows the progress of a pack by phases, and cancels the pack on an interrupt. */
final class PackDisplay implements AutoCloseable {
  private static final long PAUSE_MS = 200;

  private final Invocation invocation;
  private final PackProgress progress;
  private final Instant start;
  private final CountDownLatch ended = new CountDownLatch(1);
  private final Thread thread = new Thread(this::showAll, "progress");
  private volatile int exitStatus = ExitStatus.FAILED;

  private PackDisplay(Invocation invocation, PackProgress progress) {
    this.invocation = invocation;
    this.progress = progress;
    this.start = invocation.clock().instant();
  }

  static PackDisplay start(Invocation invocation, PackProgress progress) {
    PackDisplay display = new PackDisplay(invocation, progress);
    invocation.atInterrupt().accept(display::interrupt);
    display.thread.setDaemon(true);
    display.thread.start();
    return display;
  }

  private void interrupt(int status) {
    exitStatus = status;
    progress.cancel();
  }

  int exitStatus() {
    return exitStatus;
  }

  private void showAll() {
    boolean over = false;
    while (!over) {
      Phase phase = progress.phase();
      Instant begin = invocation.clock().instant();
      try (TaskDisplay display = TaskDisplay.of(invocation)) {
        while (!over && progress.phase() == phase) {
          display.show(report(phase, Duration.between(begin, invocation.clock().instant())));
          over = ended.await(PAUSE_MS, TimeUnit.MILLISECONDS);
        }
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return;
      }
    }
  }

  private TaskReport report(Phase phase, Duration elapsed) {
    return new TaskReport(
        "",
        phase.word(),
        "running",
        null,
        false,
        phase != Phase.LISTING,
        progress.totalFiles(),
        progress.totalBytes(),
        progress.files(),
        progress.bytes(),
        "",
        0,
        0,
        0,
        0,
        elapsed.toMillis(),
        1);
  }

  Duration elapsed() {
    return Duration.between(start, invocation.clock().instant());
  }

  @Override
  public void close() {
    ended.countDown();
    try {
      thread.join();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
