package io.pmfs.cli;

import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.LeftOutputs;
import io.pmfs.daemon.report.MissingNode;
import io.pmfs.daemon.report.OutputsReport;
import io.pmfs.settings.ExitStatus;
import io.pmfs.settings.MountFailure;
import io.pmfs.settings.Registries;
import io.pmfs.settings.Registry;
import io.pmfs.settings.Surroundings;
import io.pmfs.settings.TimeSpan;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
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
      "Waits until everything that programs have closed in a writable mount is at the source.",
      "%nExit status 0 if all is there; 4 if the source refuses something, a file is in conflict,"
          + " or the time is over: then the names of what is not there follow, and the mount goes"
          + " on trying. Also 4 if nodes of the cluster are missing, of whose changes nothing is"
          + " known. --state finishes what a mount left when it ended.%n",
      "A conflict is told until you acknowledge it: the file at the source is another program's,"
          + " and what was written here is kept beside it, as the message says. So is a change of"
          + " attributes or of a link that the source refused for good.%n"
    },
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs drain /mnt/run42",
      "  pmfs drain --timeout 2m /mnt/run42",
      "  pmfs drain --acknowledge /mnt/run42",
      "  pmfs drain --state /local/pmfs/state/run42-1f2e3d4c5b6a7980"
    })
final class DrainCommand implements Callable<Integer> {
  private static final long POLL_MS = 500;
  private static final int MOST_NAMES = 20;

  private final Invocation invocation;

  @Parameters(arity = "0..1", paramLabel = "MOUNTPOINT", description = "A writable mount.")
  private @Nullable String mountpointText;

  @Option(
      names = "--timeout",
      paramLabel = "TIME",
      description =
          "How long to wait, also for a source that refuses changes. Default: until all is there, or"
              + " the source refuses something.")
  private @Nullable String timeoutText;

  @Option(
      names = "--state",
      paramLabel = "DIR",
      description =
          "Instead of a mount: the state directory that an ended one left, as its last message and"
              + " pmfs cache name it.")
  private @Nullable String state;

  @Option(
      names = "--acknowledge",
      description =
          "First prints the conflicts and refused changes that were told until now, and tells them"
              + " no more: then the exit status speaks of later ones only.")
  private boolean acknowledges;

  DrainCommand(Invocation invocation) {
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
    return left == null
        ? drain(surroundings.resolveLinks(surroundings.resolve(String.valueOf(place))), timeout)
        : finish(surroundings.resolve(left), timeout);
  }

  private int drain(Path mountpoint, @Nullable Duration timeout) throws MountFailure {
    Registries registries = Registries.open(invocation.surroundings(), invocation::warn);
    Registry.Entry entry = registries.await(mountpoint);
    if (entry == null) {
      throw registries.notMounted(mountpoint);
    }
    if (acknowledges) {
      acknowledged(mountpoint, DrainWait.acknowledge(entry, invocation.surroundings()));
    }
    DrainWait.Outcome outcome = new DrainWait(invocation, mountpoint).await(entry, timeout);
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

  private static MountFailure readOnly(Path mountpoint) {
    return MountFailure.usage(
        mountpoint + ": not mounted with --writable, so nothing waits for the source");
  }

  /** Prints what was told until now, for the last time. */
  private void acknowledged(Path place, @Nullable OutputsReport told) throws MountFailure {
    if (told == null) {
      throw readOnly(place);
    }
    DrainProgress.lines(told, List.of()).forEach(invocation::show);
    invocation.say(
        "%s: acknowledged %s and %s"
            .formatted(
                place,
                count(told.conflicts(), "conflict"),
                count(told.refused(), "refused change")));
  }

  private static String count(long count, String what) {
    return String.format(Locale.ROOT, count == 1 ? "%,d %s" : "%,d %ss", count, what);
  }

  /** What is not known, in one line. */
  static String unknown(List<MissingNode> missing) {
    return missing.stream()
        .map(one -> one.node() + ", missing " + one.sinceWhen())
        .limit(MOST_NAMES)
        .collect(
            Collectors.joining(
                "; ",
                "all that is known here is at the source; not known is what these have: ",
                ""));
  }

  /** What is not as it should be, in one line. */
  static String summary(OutputsReport outputs) {
    String conflicts =
        outputs.conflicts() == 0
            ? ""
            : count(outputs.conflicts(), "conflict")
                + ": another program changed the same file at the source; both versions are there"
                + "; pmfs drain --acknowledge tells it no more";
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
