package io.pmfs.cli.tasks;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import io.pmfs.cli.control.PathList;
import io.pmfs.cli.control.TaskClient;
import io.pmfs.cli.control.TaskTarget;
import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.report.TaskReport;
import io.pmfs.daemon.report.TaskSummary;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.mounts.KnownMounts;
import io.pmfs.places.Surroundings;
import io.pmfs.tasks.TaskPaths;
import io.pmfs.tasks.TaskRequest;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** A command that starts a daemon's task over many files and follows it until it ends. */
abstract class TaskCommand implements Callable<Integer> {
  private static final Gson GSON =
      new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().serializeNulls().create();

  private final Invocation invocation;
  private final CountDownLatch interrupted = new CountDownLatch(1);
  private volatile int interruptStatus;

  @Spec private CommandSpec spec;

  @Parameters(
      arity = "1..*",
      paramLabel = "MOUNTPOINT|PATH",
      description =
          "A mount point, for the whole dataset; or directories and files in it, or in its source.")
  private List<String> places;

  @Option(
      names = "--list",
      paramLabel = "FILE",
      description =
          "Read the paths from FILE (- for standard input), one per line; relative to the mount"
              + " point, or absolute.")
  @SuppressWarnings("UnusedVariable") // read by its name
  private @Nullable String list;

  @Option(names = "--background", description = "Return at once; pmfs status shows the progress.")
  private boolean background;

  @Option(
      names = "--wait",
      description = "Start nothing; wait for the running task and exit with its status.")
  private boolean wait;

  @Option(
      names = "--report",
      paramLabel = "FILE",
      description = "Write the problems of single paths to FILE, as JSON lines.")
  private @Nullable String report;

  @Option(names = "--json", description = "Print the summary as one JSON object.")
  private boolean json;

  @SuppressWarnings("NullAway.Init") // picocli sets the rest
  TaskCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  abstract TaskRequest request(TaskPaths paths) throws MountFailure;

  /** Checks the options of this command. */
  abstract void checkOptions() throws MountFailure;

  @Override
  public final Integer call() throws MountFailure {
    checkOptions();
    exclude("--background", "--wait", "--report", "--json");
    exclude("--wait", "--list");
    Surroundings surroundings = invocation.surroundings();
    TaskTarget target =
        TaskTarget.find(places, KnownMounts.open(surroundings, invocation::warn), surroundings);
    TaskRequest request = wait ? null : request(paths(target));
    String listOption = listOption();
    TaskClient client = new TaskClient(target.dataset().mount(), surroundings);
    try (FindingsReport findings =
        FindingsReport.open(
            invocation::warn, report == null ? null : surroundings.resolve(report))) {
      if (request == null) {
        return await(client, target, findings);
      }
      if (listOption == null) {
        expectInterrupt();
      }
      return see(
          listOption == null
              ? client.start(request)
              : client.start(request, sink -> list(listOption, target, sink)),
          client,
          target,
          findings);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return ExitStatus.FAILED;
    }
  }

  /** The paths on the command line; empty with a list, which is streamed. */
  private TaskPaths paths(TaskTarget target) throws MountFailure {
    String option = listOption();
    if (option == null) {
      return TaskPaths.of(target.paths());
    }
    if (!target.isWhole()) {
      throw MountFailure.usage(
          option + ": its paths are relative to the mount point; give only the mount point");
    }
    return TaskPaths.NONE;
  }

  private long list(String option, TaskTarget target, PathList.Sink sink)
      throws MountFailure, IOException {
    String file = spec.commandLine().getParseResult().matchedOptionValue(option, "-");
    long count = PathList.parse(option, file, invocation, target.dataset(), sink);
    // Before this, an interrupt ends the command, and the daemon drops the incomplete list.
    expectInterrupt();
    return count;
  }

  private void expectInterrupt() {
    if (!background) {
      invocation.atInterrupt().accept(this::interrupt);
    }
  }

  /** The option that gives a file with paths; null without one. */
  @Nullable String listOption() {
    return isGiven("--list") ? "--list" : null;
  }

  private int await(TaskClient client, TaskTarget target, FindingsReport findings)
      throws MountFailure, InterruptedException {
    TaskReport latest = client.latest();
    if (latest == null) {
      invocation.say(target.dataset().mount().mountpoint() + ": nothing is running");
      return ExitStatus.DONE;
    }
    return follow(latest, client, target, findings); // an interrupt only ends the wait
  }

  private int see(
      @Nullable TaskReport started, TaskClient client, TaskTarget target, FindingsReport findings)
      throws MountFailure, InterruptedException {
    if (started == null) {
      invocation.say("nothing to do: the list has no paths");
      return ExitStatus.DONE;
    }
    if (background) {
      String mountpoint = target.dataset().mount().mountpoint();
      invocation.say(
          "%s: %s in the background; pmfs %s --wait %s waits for it"
              .formatted(mountpoint, started.activity(), spec.name(), mountpoint));
      return ExitStatus.DONE;
    }
    return follow(started, client, target, findings);
  }

  private int follow(
      TaskReport first, TaskClient client, TaskTarget target, FindingsReport findings)
      throws MountFailure, InterruptedException {
    TaskReport last;
    try (TaskDisplay display = TaskDisplay.of(invocation)) {
      last = new TaskFollower(client, display, interrupted).follow(first);
    }
    findings.take(client, last);
    findings.conclude(last);
    TaskSummary summary = TaskSummary.of(last);
    if (json) {
      invocation.showJson(GSON.toJson(last));
    } else {
      invocation.say(target.dataset().mount().mountpoint() + ": " + summary.text());
    }
    return interrupted.getCount() == 0 ? interruptStatus : summary.exitStatus();
  }

  private void interrupt(int exitStatus) {
    interruptStatus = exitStatus;
    interrupted.countDown();
  }

  final boolean isGiven(String option) {
    return spec.commandLine().getParseResult().hasMatchedOption(option);
  }

  /** Rejects a combination of an option with any of the others. */
  final void exclude(String option, String... others) {
    for (String other : others) {
      if (isGiven(option) && isGiven(other)) {
        throw new ParameterException(spec.commandLine(), other + ": not together with " + option);
      }
    }
  }
}
