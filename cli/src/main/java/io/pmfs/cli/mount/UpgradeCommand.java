package io.pmfs.cli.mount;

import io.netty.handler.codec.http.HttpMethod;
import io.pmfs.cli.control.ControlClient;
import io.pmfs.cli.control.MountClient;
import io.pmfs.daemon.Invocation;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.machine.TimeSpan;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.KnownMounts;
import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Parameters;

/** {@code pmfs upgrade}: replaces a running daemon by the installed version, without unmounting. */
@Command(
    name = "upgrade",
    description =
        "Replaces the daemon of a mount by the installed version, without unmounting. Readers wait"
            + " for a moment.%n",
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {"  pmfs upgrade /mnt/dataset"})
public final class UpgradeCommand implements Callable<Integer> {
  private static final Duration ANSWER = Duration.ofSeconds(10);
  private static final Duration SUCCESSOR = Duration.ofSeconds(60);
  private static final long POLL_MS = 50;
  private static final int HTTP_OK = 200;

  private final Invocation invocation;

  @Parameters(paramLabel = "MOUNTPOINT", description = "Where the dataset is mounted.")
  private String mountpointText;

  public UpgradeCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  @Override
  public Integer call() throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    Path mountpoint = surroundings.resolveLinks(surroundings.resolve(mountpointText));
    KnownMounts knownMounts = KnownMounts.open(surroundings, invocation::warn);
    DaemonRecord before = knownMounts.await(mountpoint);
    if (before == null) {
      throw knownMounts.notMounted(mountpoint);
    }
    DaemonRecord asked = ask(mountpoint, before);
    long deadline = System.nanoTime() + SUCCESSOR.toNanos();
    while (System.nanoTime() < deadline) {
      DaemonRecord now = knownMounts.find(mountpoint);
      if (now != null && now.pid() != asked.pid()) {
        invocation.say(
            "%s: pid %d took over from pid %d".formatted(mountpoint, now.pid(), asked.pid()));
        return ExitStatus.DONE;
      }
      pause();
    }
    throw new MountFailure(
        ExitStatus.FAILED,
        "%s: no daemon took over within %s; see %s"
            .formatted(mountpoint, TimeSpan.format(SUCCESSOR), asked.logFile()));
  }

  /** Requests the hand-over; returns the daemon to be replaced. */
  private DaemonRecord ask(Path mountpoint, DaemonRecord daemon) throws MountFailure {
    MountClient client = new MountClient(daemon, invocation.surroundings());
    try {
      ControlClient.Answer answer = client.ask(HttpMethod.POST, "/upgrade", ANSWER);
      if (answer.status() != HTTP_OK) {
        throw new MountFailure(ExitStatus.FAILED, mountpoint + ": " + answer.error());
      }
      return client.daemon();
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.FAILED,
          "%s: daemon (pid %d): %s".formatted(mountpoint, daemon.pid(), Reason.of(e)),
          e);
    }
  }

  private static void pause() throws MountFailure {
    try {
      Thread.sleep(POLL_MS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new MountFailure(ExitStatus.FAILED, "interrupted", e);
    }
  }
}
