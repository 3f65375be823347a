package io.pmfs.cli.status;

import io.pmfs.cli.control.MountClient;
import io.pmfs.cli.control.RequestStream;
import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.requests.LogLine;
import io.pmfs.daemon.requests.Profile;
import io.pmfs.daemon.requests.ProfileKey;
import io.pmfs.fuse.ReadMode;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.metadata.PathText;
import io.pmfs.mounts.DaemonRecord;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** Profiles a mount while it is used. */
final class ProfileWatch {
  private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

  private final Invocation invocation;
  private final DaemonRecord mount;
  private final int top;
  private final ProfileDisplay display;
  private final Profile all;
  private final Profile recent;

  /** Counted down when the watch ends, for any reason. */
  private final CountDownLatch over = new CountDownLatch(1);

  private volatile boolean isEndedByDaemon;

  ProfileWatch(
      Invocation invocation, DaemonRecord mount, ProfileKey by, int top, ProfileDisplay display) {
    this.invocation = invocation;
    this.mount = mount;
    this.top = top;
    this.display = display;
    this.all = new Profile(by);
    this.recent = new Profile(by);
  }

  /**
   * Shows a table after each pause, and a last one at the limit, if any, after an interrupt, or
   * when the daemon ends. Returns the exit status.
   */
  @SuppressWarnings("try") // the stream only calls back
  int watch(Duration pause, @Nullable Duration limit) throws MountFailure {
    MountClient client = new MountClient(mount, invocation.surroundings());
    List<String> head = head(StatusCommand.ask(client));
    invocation.atInterrupt().accept(status -> over.countDown());
    long begin = System.nanoTime();
    try (display;
        RequestStream stream =
            client.ask(
                socket ->
                    RequestStream.open(socket, ANSWER_LIMIT, this::take, this::endedByDaemon))) {
      showIntervals(head, begin, pause, limit);
      over.countDown(); // from here on, this side ends the stream
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.FAILED,
          "%s: pid %d does not report its requests: %s"
              .formatted(mount.mountpoint(), mount.pid(), e.getMessage()),
          e);
    }
    List<String> lastHead = new ArrayList<>(head);
    lastHead.add(0, "In all:");
    display.last(lastHead, all.report(true, secondsSince(begin), top));
    if (!isEndedByDaemon) {
      return ExitStatus.DONE;
    }
    invocation.warn(mount.mountpoint() + ": its daemon ended, or disconnected this profile");
    return limit == null ? ExitStatus.DONE : ExitStatus.PARTLY;
  }

  private void showIntervals(
      List<String> head, long begin, Duration pause, @Nullable Duration limit) {
    long shown = begin;
    try {
      while (true) {
        long left = limit == null ? Long.MAX_VALUE : limit.toNanos() - (System.nanoTime() - begin);
        if (left <= 0 || over.await(Math.min(left, pause.toNanos()), TimeUnit.NANOSECONDS)) {
          return;
        }
        Profile.Report report = recent.drain(secondsSince(shown), top);
        shown = System.nanoTime();
        if (!display.show(head, report)) {
          return;
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void take(String text) {
    LogLine line = LogLine.parse(text);
    all.add(line);
    recent.add(line);
  }

  private void endedByDaemon() {
    isEndedByDaemon = over.getCount() > 0;
    over.countDown();
  }

  private static double secondsSince(long nanos) {
    return (System.nanoTime() - nanos) / 1e9;
  }

  /** Names the mount and the requests that cannot be counted. */
  private static List<String> head(StatusReport status) {
    String what =
        status.mount().source()
            + " on "
            + status.mount().mountpoint()
            + ", "
            + status.bridge().readMode();
    return List.of(
        PathText.printable(what),
        status.bridge().readMode().equals(ReadMode.PAGE_CACHE.word())
            ? "not counted: reads from the kernel's page cache"
            : "not counted: reads from the kernel's page cache, and reads of copies by the kernel"
                + " (passthrough)");
  }
}
