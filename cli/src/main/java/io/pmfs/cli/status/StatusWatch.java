package io.pmfs.cli.status;

import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.machine.MountFailure;
import io.pmfs.metadata.PathText;
import io.pmfs.mounts.DaemonRecord;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** {@code pmfs status --watch}: asks repeatedly until interrupted or unmounted. */
final class StatusWatch {
  private final Invocation invocation;
  private final Asker asker;
  private final Duration interval;
  private final CountDownLatch interrupted = new CountDownLatch(1);
  private Map<String, Asked> last = new HashMap<>();

  /** The mounts to watch, and their reports. */
  interface Asker {
    /** Null when the watched mount is gone. */
    @Nullable List<DaemonRecord> mounts() throws MountFailure;

    List<Replies.Reply<StatusReport>> ask(List<DaemonRecord> mounts) throws MountFailure;
  }

  private record Asked(StatusReport report, long nanos) {}

  StatusWatch(Invocation invocation, Asker asker, Duration interval) {
    this.invocation = invocation;
    this.asker = asker;
    this.interval = interval;
  }

  /** Shows blocks; returns false when the mount is gone. */
  boolean blocks() throws MountFailure {
    try (WatchScreen screen = WatchScreen.of(invocation)) {
      return repeat(mounts -> screen.show(block(mounts)));
    }
  }

  /**
   * Shows {@code text} of the reports as one line each time; returns false when the mount is gone.
   */
  boolean lines(Function<List<StatusReport>, String> text) throws MountFailure {
    return repeat(
        mounts -> {
          List<StatusReport> reports = new ArrayList<>();
          for (Replies.Reply<StatusReport> reply : asker.ask(mounts)) {
            StatusReport report = reply.value();
            MountFailure failure = reply.failure();
            if (report != null) {
              reports.add(report);
            } else if (failure != null) {
              invocation.warn(failure.line());
            }
          }
          if (!reports.isEmpty() || mounts.isEmpty()) {
            invocation.showJson(text.apply(reports));
          }
          return !invocation.out().checkError();
        });
  }

  interface Round {
    /** Returns whether the output is still open. */
    boolean show(List<DaemonRecord> mounts) throws MountFailure;
  }

  /** Repeats rounds; returns false when the mount is gone. */
  boolean repeat(Round round) throws MountFailure {
    invocation.atInterrupt().accept(status -> interrupted.countDown());
    try {
      do {
        List<DaemonRecord> mounts = asker.mounts();
        if (mounts == null) {
          return false;
        }
        if (!round.show(mounts)) {
          return true;
        }
      } while (!interrupted.await(interval.toMillis(), TimeUnit.MILLISECONDS));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    return true;
  }

  private List<String> block(List<DaemonRecord> mounts) throws MountFailure {
    List<String> lines = new ArrayList<>();
    Map<String, Asked> asked = new HashMap<>();
    for (Replies.Reply<StatusReport> reply : asker.ask(mounts)) {
      if (!lines.isEmpty()) {
        lines.add("");
      }
      StatusReport report = reply.value();
      MountFailure failure = reply.failure();
      if (report != null) {
        Asked now = new Asked(report, System.nanoTime());
        // Keyed by socket, because a detached mount may have the same mount point.
        String socket = reply.mount().socket();
        Asked before = last.get(socket);
        asked.put(socket, now);
        lines.addAll(
            before == null
                ? WatchBlock.of(now.report(), null, 0)
                : WatchBlock.of(
                    now.report(), before.report(), (now.nanos() - before.nanos()) / 1e9));
      } else if (failure != null) {
        // Another daemon may be starting.
        lines.add(PathText.printable(failure.line()));
      }
    }
    last = asked;
    return lines.isEmpty() ? List.of("No mounts.") : lines;
  }
}
