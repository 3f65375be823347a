package io.pmfs.cli.tasks;

import com.google.gson.Gson;
import com.google.gson.JsonSyntaxException;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.QueryStringEncoder;
import io.pmfs.cli.control.ControlClient;
import io.pmfs.cli.control.MountClient;
import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.report.OutputsReport;
import io.pmfs.daemon.tasks.Drains;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.PathText;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.KnownMounts;
import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Waits until everything that was closed in a writable mount is at the source. An interrupt by the
 * user only ends the wait.
 */
public final class DrainWait {
  private static final Duration ANSWER = Duration.ofSeconds(30);
  private static final long FIRST_PAUSE_MS = 20;
  private static final long LONGEST_PAUSE_MS = 500;

  /** The pause between drains while the source refuses changes and there is time. */
  private static final long AGAIN_MS = 2000;

  private static final int HTTP_OK = 200;
  private static final int HTTP_NOT_FOUND = 404;
  private static final int HTTP_GONE = 410;
  private static final Gson GSON = new Gson();

  private final Invocation invocation;
  private final Path mountpoint;
  private final CountDownLatch interrupted = new CountDownLatch(1);
  private volatile int interruptStatus;

  public DrainWait(Invocation invocation, Path mountpoint) {
    this.invocation = invocation;
    this.mountpoint = mountpoint;
  }

  /**
   * The outcome of the wait.
   *
   * @param last the last answer
   * @param daemon the daemon that gave it
   * @param interruptStatus the exit status for the signal that ended the wait; 0 without a signal
   */
  public record Outcome(Drains.Report last, DaemonRecord daemon, int interruptStatus) {
    public boolean isDrained() {
      return last.state().equals(Drains.Report.DONE);
    }
  }

  /**
   * Waits until drained, the timeout, or an interrupt.
   *
   * @param timeout null: until the source has everything or refuses a change
   * @param idle how long nothing may reach the source; null: for ever
   * @return null for a read-only mount
   */
  @Nullable
  public Outcome await(DaemonRecord mount, @Nullable Duration timeout, @Nullable Duration idle)
      throws MountFailure {
    Idleness idleness = new Idleness(idle);
    long end = timeout == null ? Long.MAX_VALUE : System.nanoTime() + timeout.toNanos();
    MountClient daemon = client(mount);
    Drains.Report report = ask(daemon, HttpMethod.POST, "/drain");
    if (report == null) {
      return null;
    }
    invocation.atInterrupt().accept(this::interrupt);
    long pause = FIRST_PAUSE_MS;
    try (DrainProgress progress = new DrainProgress(invocation)) {
      while (true) {
        progress.show(report.outputs());
        boolean isRefused = report.state().equals(Drains.Report.LEFT);
        boolean hasTime = timeout != null && System.nanoTime() - end < 0;
        if (report.state().equals(Drains.Report.DONE) || (isRefused && !hasTime)) {
          return new Outcome(report, daemon.daemon(), 0);
        }
        long left = timeout == null ? Long.MAX_VALUE : end - System.nanoTime();
        if (left <= 0 || idleness.isOver(report.outputs())) {
          cancel(daemon, report);
          return new Outcome(report, daemon.daemon(), 0);
        }
        long wanted = isRefused ? AGAIN_MS : pause;
        if (interrupted.await(Math.min(wanted, 1 + left / 1_000_000), TimeUnit.MILLISECONDS)) {
          cancel(daemon, report);
          return new Outcome(report, daemon.daemon(), interruptStatus);
        }
        pause = Math.min(LONGEST_PAUSE_MS, pause * 2);
        if (isRefused) {
          report = again(daemon);
        } else {
          Drains.Report next = next(daemon, report);
          if (next == null) {
            // Another daemon serves the mount now.
            daemon = client(successor());
            next = again(daemon);
          }
          report = next;
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new MountFailure(ExitStatus.FAILED, mountpoint + ": interrupted", e);
    }
  }

  /** Measures for how long nothing has reached the source. */
  private static final class Idleness {
    private final @Nullable Duration limit;
    private long bytes = -1;
    private long changes = -1;
    private long since;

    private Idleness(@Nullable Duration limit) {
      this.limit = limit;
    }

    /** The counts begin anew with each daemon, which is progress, too. */
    private boolean isOver(OutputsReport outputs) {
      long now = System.nanoTime();
      if (outputs.drainedBytes() != bytes || outputs.drainedChanges() != changes) {
        bytes = outputs.drainedBytes();
        changes = outputs.drainedChanges();
        since = now;
      }
      return limit != null && Duration.ofNanos(now - since).compareTo(limit) >= 0;
    }
  }

  private MountClient client(DaemonRecord mount) {
    return new MountClient(mount, invocation.surroundings());
  }

  private void interrupt(int status) {
    interruptStatus = status;
    interrupted.countDown();
  }

  private Drains.Report again(MountClient daemon) throws MountFailure {
    Drains.Report report = ask(daemon, HttpMethod.POST, "/drain");
    if (report == null) {
      throw new MountFailure(ExitStatus.FAILED, mountpoint + ": mounted again, but read-only");
    }
    return report;
  }

  private DaemonRecord successor() throws MountFailure {
    KnownMounts knownMounts = KnownMounts.open(invocation.surroundings());
    DaemonRecord entry = knownMounts.await(mountpoint);
    if (entry == null) {
      throw unmounted(mountpoint);
    }
    return entry;
  }

  /** The failure for a mount that another command has unmounted. */
  public static MountFailure unmounted(Path mountpoint) {
    return new MountFailure(
        ExitStatus.NOT_MOUNTED,
        mountpoint + ": unmounted meanwhile; pmfs cache shows whether changes are left");
  }

  /** Null if the daemon does not answer or does not know this drain. */
  private static Drains.@Nullable Report next(MountClient daemon, Drains.Report report) {
    try {
      return ask(daemon, HttpMethod.GET, "/drain?id=" + report.id());
    } catch (MountFailure e) {
      return null;
    }
  }

  private static void cancel(MountClient daemon, Drains.Report report) {
    try {
      daemon.askOnlyThisOne(HttpMethod.DELETE, "/drain?id=" + report.id(), ANSWER);
    } catch (IOException | MountFailure e) {
      // The daemon keeps waiting, at the cost of a thread.
    }
  }

  /** Acknowledges conflicts and refusals; null for a read-only mount. */
  static @Nullable OutputsReport acknowledge(DaemonRecord mount, Surroundings surroundings)
      throws MountFailure {
    return ask(
        new MountClient(mount, surroundings), HttpMethod.POST, "/acknowledge", OutputsReport.class);
  }

  /**
   * Retries or discards refused changes; null for a read-only mount.
   *
   * @param what {@code retry} or {@code drop}
   * @param path below the mount point
   */
  static Drains.@Nullable Changes refused(
      DaemonRecord mount, Surroundings surroundings, String what, FileName path)
      throws MountFailure {
    return ask(
        new MountClient(mount, surroundings),
        HttpMethod.POST,
        request(what, path),
        Drains.Changes.class);
  }

  static String request(String what, FileName path) {
    QueryStringEncoder query = new QueryStringEncoder("/" + what);
    query.addParam("path", PathText.encode(path));
    return query.toString();
  }

  private static Drains.@Nullable Report ask(MountClient mount, HttpMethod method, String uri)
      throws MountFailure {
    return ask(mount, method, uri, Drains.Report.class);
  }

  /** Null if the mount is read-only or its daemon does not support the request. */
  private static <T> @Nullable T ask(
      MountClient mount, HttpMethod method, String uri, Class<T> type) throws MountFailure {
    try {
      ControlClient.Answer answer = mount.ask(method, uri, ANSWER);
      if (answer.status() == HTTP_NOT_FOUND || answer.status() == HTTP_GONE) {
        return null;
      }
      T report = answer.status() == HTTP_OK ? GSON.fromJson(answer.body(), type) : null;
      if (report == null) {
        throw new IOException(answer.error());
      }
      return report;
    } catch (IOException | JsonSyntaxException e) {
      throw new MountFailure(
          ExitStatus.FAILED,
          "%s: pid %d does not report what is left: %s; see %s"
              .formatted(
                  mount.daemon().mountpoint(),
                  mount.daemon().pid(),
                  e instanceof IOException failure ? Reason.of(failure) : e.getMessage(),
                  mount.daemon().logFile()),
          e);
    }
  }
}
