package io.pmfs.cli;

import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.LeftOutputs;
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
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code pmfs drain}: waits until the changes of a writable mount are at the source. */
@Command(
    name = "drain",
    description = {
      "Waits until everything that programs have closed in a writable mount is at the source.",
      "%nExit status 0 if all is there; 4 if the source refuses something, a file is in conflict, or"
          + " the time is over: then the names of what is not there follow, and the mount goes on"
          + " trying. --state finishes what a mount left when it ended.%n"
    },
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs drain /mnt/run42",
      "  pmfs drain --timeout 2m /mnt/run42",
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
        : finish(surroundings.resolveLinks(surroundings.resolve(left)), timeout);
  }

  private int drain(Path mountpoint, @Nullable Duration timeout) throws MountFailure {
    Registries registries = Registries.open(invocation.surroundings(), invocation::warn);
    Registry.Entry entry = registries.await(mountpoint);
    if (entry == null) {
      throw registries.notMounted(mountpoint);
    }
    DrainWait.Outcome outcome = new DrainWait(invocation, mountpoint).await(entry, timeout);
    if (outcome == null) {
      throw MountFailure.usage(
          mountpoint + ": not mounted with --writable, so nothing waits for the source");
    }
    if (outcome.isDrained() && outcome.last().outputs().isWhole()) {
      invocation.say(mountpoint + ": all is at the source");
      return ExitStatus.DONE;
    }
    DrainProgress.lines(outcome.last().outputs(), outcome.last().waiting())
        .forEach(invocation.out()::println);
    invocation.warn(mountpoint + ": " + summary(outcome.last().outputs()));
    return outcome.interruptStatus() != 0 ? outcome.interruptStatus() : ExitStatus.PARTLY;
  }

  /** What is not as it should be, in one line. */
  static String summary(OutputsReport outputs) {
    String conflicts =
        outputs.conflicts() == 0
            ? ""
            : outputs.conflicts()
                + (outputs.conflicts() == 1 ? " conflict" : " conflicts")
                + ": another program changed the same file at the source; both versions are there";
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
      lines.forEach(invocation.out()::println);
      invocation.warn(source + ": " + summary(report));
      return interrupted.get() != 0 ? interrupted.get() : ExitStatus.PARTLY;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return ExitStatus.FAILED;
    }
  }
}
