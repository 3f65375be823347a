package io.pmfs.cli.tasks;

import io.pmfs.cli.control.TaskClient;
import io.pmfs.daemon.report.TaskReport;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** Follows a task until it ends, and shows its progress. */
final class TaskFollower {
  private static final long FIRST_PAUSE_MS = 20;
  private static final long LONGEST_PAUSE_MS = 500;
  private static final Duration CANCEL_LIMIT = Duration.ofSeconds(30);

  private final TaskClient client;
  private final TaskDisplay display;
  private final CountDownLatch interrupted;

  TaskFollower(TaskClient client, TaskDisplay display, CountDownLatch interrupted) {
    this.client = client;
    this.display = display;
    this.interrupted = interrupted;
  }

  /** Returns the last report of a task. An interrupt cancels the task. */
  TaskReport follow(TaskReport first) throws MountFailure, InterruptedException {
    TaskReport last = first;
    long pauseMs = FIRST_PAUSE_MS;
    while (last.isRunning()) {
      display.show(last);
      if (interrupted.await(pauseMs, TimeUnit.MILLISECONDS)) {
        return cancel(last);
      }
      pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2);
      last = newest(last);
    }
    display.show(last);
    return last;
  }

  private TaskReport newest(TaskReport last) throws MountFailure {
    TaskReport newest = client.latest();
    if (newest == null || !newest.id().equals(last.id())) {
      throw new MountFailure(
          ExitStatus.FAILED,
          last.activity()
              + (newest == null
                  ? ": the next daemon did not continue it; run this again"
                  : ": ended, and another task began before its outcome was read"));
    }
    return newest;
  }

  private TaskReport cancel(TaskReport running) throws MountFailure, InterruptedException {
    TaskReport last = running;
    client.cancel();
    long deadline = System.nanoTime() + CANCEL_LIMIT.toNanos();
    while (last.isRunning() && System.nanoTime() - deadline < 0) {
      Thread.sleep(FIRST_PAUSE_MS);
      last = newest(last);
    }
    return last;
  }
}
