package io.pmfs.cli.tasks;

import io.pmfs.cli.control.TaskTarget;
import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.LeftOutputs;
import io.pmfs.daemon.report.MissingNode;
import io.pmfs.daemon.report.OutputsReport;
import io.pmfs.daemon.tasks.Drains;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.TimeSpan;
import io.pmfs.metadata.FileName;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.KnownMounts;
import io.pmfs.places.Surroundings;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code pmfs drain}: waits until the changes of a writable mount are at the source. */
@Command(
    name = "drain",
    description = {
      "Waits until the source has everything that programs have closed in a writable mount.",
      "%nExit status 0 if the source has everything; 4 if it refuses a change, a file is in"
          + " conflict, or the time is over: then the missing names are listed, and the mount keeps"
          + " trying. Also 4 if nodes of the cluster are missing, whose changes are unknown."
          + " --state copies to the source what an ended mount left behind.%n",
      "A conflict is reported until you acknowledge it: another program has changed the file at the"
          + " source, and your version is saved beside it under the name in the message. Changes of"
          + " attributes or links that the source finally refused are reported in the same way.",
      "%nOther refused changes block only changes that depend on them. A change is retried"
          + " automatically if the cause may pass, such as a full file system; otherwise it is set"
          + " aside until you choose --retry, --export or --drop.%n"
    },
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs drain /mnt/run42",
      "  pmfs drain --timeout 2m /mnt/run42",
      "  pmfs drain --acknowledge /mnt/run42",
      "  pmfs drain --retry /mnt/run42/results /mnt/run42",
      "  pmfs drain --export /mnt/run42/results /home/anna /mnt/run42",
      "  pmfs drain --drop /mnt/run42/results /mnt/run42",
      "  pmfs drain --state /local/pmfs/state/run42-1f2e3d4c5b6a7980"
    })
public final class DrainCommand implements Callable<Integer> {
  private static final long POLL_MS = 500;
  private static final int MOST_NAMES = 20;

  private final Invocation invocation;

  @Parameters(arity = "0..1", paramLabel = "MOUNTPOINT", description = "A writable mount.")
  private @Nullable String mountpointText;

  @Option(
      names = "--timeout",
      paramLabel = "TIME",
      description =
          "How long to wait, even if the source refuses changes. Default: until the source has"
              + " everything or refuses a change.")
  private @Nullable String timeoutText;

  @Option(
      names = "--state",
      paramLabel = "DIR",
      description =
          "Instead of a mount: the state directory of an ended mount, shown in its last message and"
              + " by pmfs cache.")
  private @Nullable String state;

  @Option(
      names = "--acknowledge",
      description =
          "First print the conflicts and refused changes so far, and do not report them again: the"
              + " exit status then reflects only later ones.")
  private boolean acknowledges;

  @Option(
      names = "--retry",
      paramLabel = "PATH",
      description = "First retry refused changes at and below PATH, including those set aside.")
  private @Nullable String retried;

  @Option(
      names = "--drop",
      paramLabel = "PATH",
      description =
          "First discard refused changes at and below PATH, and changes that depend on them: the"
              + " mount then shows what the source has. Prints each path.")
  private @Nullable String dropped;

  @Option(
      names = "--export",
      arity = "2",
      paramLabel = "ARGUMENT",
      hideParamSyntax = true,
      description =
          "Two arguments, PATH and DIR: only copy PATH, recursively, as the mount shows it, into"
              + " the directory DIR.")
  private String @Nullable [] exported;

  public DrainCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  @Override
  public Integer call() throws MountFailure {
    Duration timeout =
        timeoutText == null
            ? null
            : MountFailure.parsing("--timeout", timeoutText, TimeSpan::parse);
    String place = mountpointText;
    String left = state;
    if ((place == null) == (left == null)) {
      throw MountFailure.usage("drain: give either MOUNTPOINT or --state DIR");
    }
    Surroundings surroundings = invocation.surroundings();
    if (exported != null && place == null) {
      throw MountFailure.usage(
          "--export: does not work with --state; mount the source again and export");
    }
    return left == null
        ? drain(surroundings.resolveLinks(surroundings.resolve(String.valueOf(place))), timeout)
        : finish(surroundings.resolve(left), timeout);
  }

  private int drain(Path mountpoint, @Nullable Duration timeout) throws MountFailure {
    KnownMounts knownMounts = KnownMounts.open(invocation.surroundings(), invocation::warn);
    DaemonRecord entry = knownMounts.await(mountpoint);
    if (entry == null) {
      throw knownMounts.notMounted(mountpoint);
    }
    String[] export = exported;
    if (export != null) {
      return export(entry, mountpoint, export[0], export[1]);
    }
    if (acknowledges) {
      acknowledged(mountpoint, DrainWait.acknowledge(entry, invocation.surroundings()));
    }
    for (Map.Entry<String, String> wish : wishes().entrySet()) {
      FileName path = TaskTarget.in(entry, wish.getValue(), invocation.surroundings());
      Drains.Changes changes =
          DrainWait.refused(entry, invocation.surroundings(), wish.getKey(), path);
      if (changes == null) {
        throw readOnly(mountpoint);
      }
      report(wish.getKey(), wish.getValue(), changes.paths());
    }
    DrainWait.Outcome outcome = new DrainWait(invocation, mountpoint).await(entry, timeout, null);
    if (outcome == null) {
      throw readOnly(mountpoint);
    }
    if (outcome.isDrained() && outcome.last().outputs().isWhole()) {
      List<MissingNode> missing = outcome.last().absent();
      if (missing.isEmpty()) {
        invocation.say(mountpoint + ": all is at the source");
        return ExitStatus.DONE;
      }
      invocation.warn(mountpoint + ": " + unknown(missing));
      return ExitStatus.PARTLY;
    }
    DrainProgress.lines(outcome.last().outputs(), outcome.last().waiting())
        .forEach(invocation::show);
    invocation.warn(mountpoint + ": " + summary(outcome.last().outputs()));
    return outcome.interruptStatus() != 0 ? outcome.interruptStatus() : ExitStatus.PARTLY;
  }

  private int export(DaemonRecord entry, Path mountpoint, String given, String directory)
      throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    FileName path = TaskTarget.in(entry, given, surroundings);
    if (!FileName.of(path.toString()).equals(path)) {
      throw MountFailure.usage(given + ": not a name in UTF-8; export the directory that it is in");
    }
    return new Export(invocation)
        .copy(mountpoint.resolve(path.toString()), surroundings.resolve(directory));
  }

  /** The requested actions on refused changes, and their paths. */
  private Map<String, String> wishes() {
    Map<String, String> wishes = new LinkedHashMap<>();
    String again = retried;
    String up = dropped;
    if (again != null) {
      wishes.put("retry", again);
    }
    if (up != null) {
      wishes.put("drop", up);
    }
    return wishes;
  }

  private void report(String what, String given, List<String> paths) {
    paths.forEach(invocation::show);
    String count = count(paths.size(), "change");
    invocation.say(
        what.equals("retry")
            ? "%s: %s retried".formatted(given, count)
            : "%s: %s discarded; the mount shows what the source has".formatted(given, count));
  }

  private static MountFailure readOnly(Path mountpoint) {
    return MountFailure.usage(
        mountpoint + ": not mounted with --writable, so nothing waits for the source");
  }

  /** Prints the acknowledged conflicts and refusals. */
  private void acknowledged(Path place, @Nullable OutputsReport acknowledged) throws MountFailure {
    if (acknowledged == null) {
      throw readOnly(place);
    }
    DrainProgress.lines(acknowledged, List.of()).forEach(invocation::show);
    invocation.say(
        "%s: acknowledged %s and %s"
            .formatted(
                place,
                count(acknowledged.conflicts(), "conflict"),
                count(acknowledged.refused(), "refused change")));
  }

  private static String count(long count, String what) {
    return String.format(Locale.ROOT, count == 1 ? "%,d %s" : "%,d %ss", count, what);
  }

  /** The missing nodes, in one line. */
  public static String unknown(List<MissingNode> missing) {
    return missing.stream()
        .map(one -> one.node() + ", missing " + one.sinceWhen())
        .limit(MOST_NAMES)
        .collect(
            Collectors.joining(
                "; ", "all known changes are at the source; unknown are those of ", ""));
  }

  /** Pending changes and conflicts, in one line. */
  public static String summary(OutputsReport outputs) {
    String conflicts =
        outputs.conflicts() == 0
            ? ""
            : count(outputs.conflicts(), "conflict")
                + ": another program changed the same file or directory; its change was kept"
                + "; pmfs drain --acknowledge stops reporting this";
    return outputs.isDrained() && outputs.refused() == 0 && !conflicts.isEmpty()
        ? conflicts
        : DrainProgress.text(outputs) + (conflicts.isEmpty() ? "" : "; " + conflicts);
  }

  private int finish(Path directory, @Nullable Duration timeout) throws MountFailure {
    long end = timeout == null ? Long.MAX_VALUE : System.nanoTime() + timeout.toNanos();
    AtomicInteger interrupted = new AtomicInteger();
    invocation.atInterrupt().accept(interrupted::set);
    try (LeftOutputs left =
        LeftOutputs.open(directory, invocation.surroundings(), invocation.opener())) {
      if (acknowledges) {
        acknowledged(left.source(), left.acknowledge());
      }
      String again = retried;
      if (again != null) {
        report("retry", again, left.retry(TaskTarget.inRoot(again)));
      }
      String up = dropped;
      if (up != null) {
        report("drop", up, left.drop(TaskTarget.inRoot(up)));
      }
      boolean isDrained = false;
      try (DrainProgress progress = new DrainProgress(invocation)) {
        while (!isDrained && interrupted.get() == 0) {
          isDrained = left.drain(POLL_MS);
          OutputsReport report = left.report();
          progress.show(report);
          boolean isRefused = timeout == null && !isDrained && report.refused() > 0;
          if (isRefused || (timeout != null && System.nanoTime() - end >= 0)) {
            break;
          }
        }
      }
      OutputsReport report = left.report();
      List<String> lines = DrainProgress.lines(report, left.waiting(MOST_NAMES));
      Path source = left.source();
      left.finish();
      if (isDrained && report.isWhole()) {
        invocation.say(source + ": all is at the source");
        return ExitStatus.DONE;
      }
      lines.forEach(invocation::show);
      invocation.warn(source + ": " + summary(report));
      return interrupted.get() != 0 ? interrupted.get() : ExitStatus.PARTLY;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return ExitStatus.FAILED;
    }
  }
}
