package io.pmfs.cli;

import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.settings.MountFailure;
import io.pmfs.settings.Registry;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/** {@code pmfs status --watch}: asks repeatedly, until interrupted or the mount is gone. */
final class StatusWatch {
  private final Invocation invocation;
  private final Asker asker;
  private final Duration interval;
  private final CountDownLatch interrupted = new CountDownLatch(1);
  private Map<String, Asked> last = new HashMap<>();

  /** The mounts to watch, and their reports. */
  interface Asker {
    /** Null when the watched mount is gone. */
    @Nullable List<Registry.Entry> mounts() throws MountFailure;

    StatusReport ask(Registry.Entry mount) throws MountFailure;
  }

  private record Asked(StatusReport report, long nanos) {}

  StatusWatch(Invocation invocation, Asker asker, Duration interval) {
    this.invocation = invocation;
    this.asker = asker;
    this.interval = interval;
  }

  /** Shows blocks; false when the mount is gone. */
  boolean blocks() throws MountFailure {
    try (WatchScreen screen = WatchScreen.of(invocation)) {
      return repeat(mounts -> screen.show(block(mounts)));
    }
  }

  /** Shows {@code text} of the reports, one line each time; false when the mount is gone. */
  boolean lines(Function<List<StatusReport>, String> text) throws MountFailure {
    return repeat(
        mounts -> {
          List<StatusReport> reports = new ArrayList<>();
          for (Registry.Entry mount : mounts) {
            try {
              reports.add(asker.ask(mount));
            } catch (MountFailure e) {
              invocation.warn(e.line());
            }
          }
          if (!reports.isEmpty() || mounts.isEmpty()) {
            invocation.out().println(text.apply(reports));
          }
          return !invocation.out().checkError();
        });
  }

  /** One round. */
  interface Round {
    /** Returns whether the output is still open. */
    boolean show(List<Registry.Entry> mounts) throws MountFailure;
  }

  /** Repeats rounds; false when the mount is gone. */
  boolean repeat(Round round) throws MountFailure {
    invocation.atInterrupt().accept(status -> interrupted.countDown());
    try {
      do {
        List<Registry.Entry> mounts = asker.mounts();
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

  private List<String> block(List<Registry.Entry> mounts) {
    List<String> lines = new ArrayList<>();
    Map<String, Asked> asked = new HashMap<>();
    for (Registry.Entry mount : mounts) {
      if (!lines.isEmpty()) {
        lines.add("");
      }
      try {
        Asked now = new Asked(asker.ask(mount), System.nanoTime());
        // A detached mount may have been at the same mount point.
        Asked before = last.get(mount.socket());
        asked.put(mount.socket(), now);
        lines.addAll(
            before == null
                ? WatchBlock.of(now.report(), null, 0)
                : WatchBlock.of(
                    now.report(), before.report(), (now.nanos() - before.nanos()) / 1e9));
      } catch (MountFailure e) {
        // Another daemon may be starting.
        lines.add(e.line().replaceAll("\\p{Cntrl}", "?"));
      }
    }
    last = asked;
    return lines.isEmpty() ? List.of("No mounts.") : lines;
  }
}
