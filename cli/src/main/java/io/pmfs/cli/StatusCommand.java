package io.pmfs.cli;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonSyntaxException;
import io.netty.handler.codec.http.HttpMethod;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code pmfs status}: what the mounts of this node hold and how often that helped. */
@Command(
    name = "status",
    description = "Shows tiers, usage, hit ratio and staging of one mount or of all.%n",
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs status",
      "  pmfs status /mnt/dataset --json",
      "  pmfs status /mnt/dataset --watch 5"
    })
final class StatusCommand implements Callable<Integer> {
  private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);
  private static final int HTTP_OK = 200;
  private static final Gson GSON =
      new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().serializeNulls().create();

  private final Invocation invocation;

  @Parameters(
      arity = "0..1",
      paramLabel = "MOUNTPOINT",
      description =
          "Where a dataset is mounted; without it, all mounts of this user; for root also those it made for users.")
  private @Nullable String mountpointText;

  @Option(
      names = "--json",
      description = "Print one JSON object, or an array of them without MOUNTPOINT.")
  private boolean json;

  @Option(
      names = "--watch",
      arity = "0..1",
      fallbackValue = "2",
      paramLabel = "SECONDS",
      description = "Repeat every SECONDS (2 if not given) until interrupted.")
  private @Nullable String watch;

  StatusCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  @Override
  public Integer call() throws MountFailure {
    String interval = watch;
    if (interval == null) {
      show();
      return ExitStatus.DONE;
    }
    if (mountpointText == null && interval.contains("/")) {
      mountpointText = interval; // "--watch /mnt/dataset": that was not a number of seconds
      interval = "2";
    }
    Duration pause = interval(interval);
    while (true) {
      show();
      try {
        Thread.sleep(pause.toMillis());
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return ExitStatus.DONE;
      }
      invocation.out().println();
    }
  }

  private static Duration interval(String text) throws MountFailure {
    try {
      Duration pause = TimeSpan.parse(text.matches("\\d+") ? text + "s" : text);
      if (pause.isZero()) {
        throw new IllegalArgumentException("'" + text + "' is no time at all");
      }
      return pause;
    } catch (IllegalArgumentException e) {
      throw new MountFailure(ExitStatus.USAGE, "--watch: " + e.getMessage(), e);
    }
  }

  private void show() throws MountFailure {
    Registries registries = Registries.open(invocation.surroundings());
    String wanted = mountpointText;
    if (wanted != null) {
      StatusReport report = ask(find(wanted, registries));
      invocation.out().println(json ? GSON.toJson(report) : StatusTable.of(report));
    } else {
      showAll(registries);
    }
    invocation.out().flush();
  }

  private void showAll(Registries registries) throws MountFailure {
    List<StatusReport> reports = new ArrayList<>();
    @Nullable MountFailure silent = null;
    for (Registry.Entry entry : registries.running()) {
      try {
        reports.add(ask(entry));
      } catch (MountFailure e) {
        invocation.warn(e.line());
        silent = e;
      }
    }
    if (json) {
      invocation.out().println(GSON.toJson(reports));
    } else if (reports.isEmpty() && silent == null) {
      invocation.out().println("No mounts.");
    } else {
      invocation.out().println(String.join("\n\n", reports.stream().map(StatusTable::of).toList()));
    }
    if (silent != null) {
      throw new MountFailure(ExitStatus.FAILED, "not all mounts answered; see the lines above");
    }
  }

  private Registry.Entry find(String text, Registries registries) throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    Path mountpoint = surroundings.resolveLinks(surroundings.resolve(text));
    Registry.Entry entry = registries.find(mountpoint);
    if (entry != null) {
      return entry;
    }
    MountTable.Mount mount = surroundings.mounts().at(mountpoint);
    if (mount == null || !mount.isPmfs()) {
      throw new MountFailure(
          ExitStatus.NOT_MOUNTED, mountpoint + ": not mounted by pmfs; pmfs status lists what is");
    }
    throw Registries.absence(mountpoint);
  }

  private static StatusReport ask(Registry.Entry entry) throws MountFailure {
    try {
      ControlClient.Answer answer =
          ControlClient.ask(Path.of(entry.socket()), HttpMethod.GET, "/status", ANSWER_LIMIT);
      StatusReport report =
          answer.status() == HTTP_OK ? GSON.fromJson(answer.body(), StatusReport.class) : null;
      if (report != null) {
        return report;
      }
      throw new IOException("it answered with status " + answer.status());
    } catch (IOException | JsonSyntaxException e) {
      throw new MountFailure(
          ExitStatus.FAILED,
          "%s: pid %d gives no status: %s; see %s"
              .formatted(entry.mountpoint(), entry.pid(), e.getMessage(), entry.logFile()),
          e);
    }
  }
}
