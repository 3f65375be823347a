package io.pmfs.cli.mount;

import io.pmfs.cli.tasks.DrainCommand;
import io.pmfs.cli.tasks.DrainProgress;
import io.pmfs.cli.tasks.DrainWait;
import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.tasks.Drains;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.machine.TimeSpan;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.KnownMounts;
import io.pmfs.mounts.MountProbe;
import io.pmfs.mounts.StandIn;
import io.pmfs.places.Surroundings;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code pmfs umount}: unmounts and waits until the daemon has ended. */
@Command(
    name = "umount",
    description = "Unmounts and stops the daemon. Copies stay in the tiers for the next mount.%n",
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs umount /mnt/dataset",
      "  pmfs umount --purge /mnt/dataset     also drop its copies",
      "  pmfs umount --lazy /mnt/dataset      even if files are open",
      "  pmfs umount --grace 10s /mnt/dataset wait 10 s for open files to be closed, then detach",
      "  pmfs umount --no-drain /mnt/run42     a writable mount, before the source has all changes"
    })
public final class UmountCommand implements Callable<Integer> {
  private static final String USUAL_TIMEOUT = "60s";
  private static final String KEPT =
      "kept for the next mount or pmfs drain --state (pmfs cache shows the directory)";
  private static final String UNDRAINED = "; pmfs umount --no-drain does not wait for it";

  private final Invocation invocation;

  @Parameters(paramLabel = "MOUNTPOINT", description = "Where the dataset is mounted.")
  private String place;

  @Option(
      names = "--lazy",
      description =
          "Detach now, even if files are open; the daemon serves them until they are closed.")
  private boolean lazy;

  @Option(names = "--purge", description = "Also drop this dataset's copies and state.")
  private boolean purge;

  @Option(
      names = "--grace",
      paramLabel = "TIME",
      description =
          "Wait up to TIME until no process has files open; then list those that do, and detach"
              + " like --lazy.")
  private @Nullable String grace;

  @Option(
      names = "--no-drain",
      description =
          "Do not wait until the changes of a writable mount are at the source. The remaining ones"
              + " are kept in its state, for the next mount or pmfs drain --state.")
  private boolean noDrain;

  @Option(
      names = "--timeout",
      paramLabel = "TIME",
      description =
          "How long to wait for the daemon (default: 60s) and, for a writable mount, until its"
              + " changes are at the source (default: no limit). If they are not by then, it stays"
              + " mounted.")
  private @Nullable String timeout;

  @Option(
      names = "--idle-timeout",
      paramLabel = "TIME",
      description =
          "Also stop waiting for a writable mount's changes once nothing has reached the source for"
              + " TIME (default: no limit).")
  private @Nullable String idleTimeout;

  public UmountCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  @Override
  public Integer call() throws MountFailure {
    WhenBusy busy = new WhenBusy(lazy, grace, invocation);
    Duration idle =
        idleTimeout == null
            ? null
            : MountFailure.parsing("--idle-timeout", idleTimeout, TimeSpan::parsePositive);
    Surroundings surroundings = invocation.surroundings();
    Path mountpoint = surroundings.resolveLinks(surroundings.resolve(place));
    MountTable.Mount mount = surroundings.mounts().at(mountpoint);
    KnownMounts knownMounts = KnownMounts.open(surroundings, invocation::warn);
    StandIn standIn = knownMounts.standIn(mountpoint);
    boolean isStandIn = mount != null && standIn != null && standIn.is(mount);
    MountTable.Mount target = mount != null && (mount.isPmfs() || isStandIn) ? mount : null;
    Unmounting unmounting =
        new Unmounting(
            mountpoint, target, busy, purge, timeout == null ? USUAL_TIMEOUT : timeout, invocation);
    if (isStandIn) {
      try {
        unmounting.ofStandIn();
      } finally {
        knownMounts.sweepHolders();
      }
      return ExitStatus.DONE;
    }
    boolean isWritable = target != null && !target.hasOption("ro");
    // Purging and draining need the daemon, unmounting does not.
    DaemonRecord entry =
        purge || (isWritable && !noDrain)
            ? knownMounts.await(mountpoint)
            : knownMounts.find(mountpoint);
    if (target == null && (entry == null || isMountedElsewhere(entry))) {
      throw knownMounts.notMounted(mountpoint);
    }
    if (entry == null) {
      boolean isStale = MountProbe.of(mountpoint) == MountProbe.STALE;
      if (isWritable && !isStale && !noDrain && !knownMounts.hasDied(mountpoint)) {
        throw new MountFailure(
            ExitStatus.PARTLY, knownMounts.absence(mountpoint).line() + UNDRAINED);
      }
      unmounting.withoutDaemon(isStale);
      knownMounts.forget(mountpoint);
      if (isWritable) {
        invocation.warn(mountpoint + ": changes that are not at the source yet are " + KEPT);
        return ExitStatus.PARTLY;
      }
      return ExitStatus.DONE;
    }
    Drained drained = drain(mountpoint, target, entry, idle);
    if (drained.status() == ExitStatus.DONE || noDrain) {
      if (isWritable && !unmounting.isMounted()) {
        throw DrainWait.unmounted(mountpoint);
      }
      // Unless drained, tells the daemon not to wait; an old daemon rejects that parameter.
      boolean isLeft =
          unmounting.ofDaemon(
              drained.daemon(),
              drained.status() != ExitStatus.DONE,
              isWritable && drained.status() == ExitStatus.DONE);
      knownMounts.sweepHolders();
      if (isLeft) {
        invocation.warn(
            mountpoint
                + ": changes that were made after the drain may not be at the source yet; they are "
                + KEPT);
        return ExitStatus.PARTLY;
      }
    }
    return drained.status();
  }

  private boolean isMountedElsewhere(DaemonRecord entry) throws MountFailure {
    return !invocation.surroundings().mounts().places(entry::shows).isEmpty();
  }

  /**
   * The end of a drain.
   *
   * @param daemon the one that serves the mount now
   */
  private record Drained(int status, DaemonRecord daemon) {}

  /** Waits until the changes of a writable mount are at the source. */
  private Drained drain(
      Path mountpoint,
      MountTable.@Nullable Mount mount,
      DaemonRecord entry,
      @Nullable Duration idle)
      throws MountFailure {
    if (mount == null || mount.hasOption("ro")) {
      return new Drained(ExitStatus.DONE, entry);
    }
    Duration limit =
        noDrain
            ? Duration.ZERO
            : timeout == null ? null : MountFailure.parsing("--timeout", timeout, TimeSpan::parse);
    DrainWait.Outcome outcome;
    try {
      outcome = new DrainWait(invocation, mountpoint).await(entry, limit, idle);
    } catch (MountFailure e) {
      if (noDrain) {
        invocation.warn(e.line());
        return new Drained(ExitStatus.PARTLY, entry);
      }
      throw new MountFailure(e.exitStatus(), e.line() + UNDRAINED, e);
    }
    if (outcome == null) {
      return new Drained(ExitStatus.DONE, entry);
    }
    if (outcome.isDrained() || (noDrain && outcome.last().outputs().isDrained())) {
      sayWhatDiffers(mountpoint, outcome.last());
      return new Drained(ExitStatus.DONE, outcome.daemon());
    }
    DrainProgress.lines(outcome.last().outputs(), outcome.last().waiting())
        .forEach(invocation::show);
    String left = mountpoint + ": " + DrainCommand.summary(outcome.last().outputs());
    invocation.warn(
        noDrain ? left + "; " + KEPT : left + "; still mounted: unmount again, or with --no-drain");
    int interrupt = outcome.interruptStatus();
    return new Drained(interrupt != 0 ? interrupt : ExitStatus.PARTLY, outcome.daemon());
  }

  /** Lists conflicts and refused changes, which unmounting does not discard. */
  private void sayWhatDiffers(Path mountpoint, Drains.Report last) {
    if (!last.absent().isEmpty()) {
      invocation.warn(mountpoint + ": " + DrainCommand.unknown(last.absent()));
    }
    if (!last.outputs().isWhole()) {
      DrainProgress.lines(last.outputs(), last.waiting()).forEach(invocation::show);
      invocation.warn(mountpoint + ": " + DrainCommand.summary(last.outputs()));
    }
  }
}
