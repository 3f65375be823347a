package io.pmfs.cli;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonSyntaxException;
import io.netty.handler.codec.http.HttpMethod;
import io.pmfs.cli.control.ControlClient;
import io.pmfs.cli.control.TaskTarget;
import io.pmfs.daemon.ControlServer;
import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.report.Engagement;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.OutputsReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.settings.ExitStatus;
import io.pmfs.settings.Holder;
import io.pmfs.settings.MountFailure;
import io.pmfs.settings.MountTable;
import io.pmfs.settings.Registries;
import io.pmfs.settings.Registry;
import io.pmfs.settings.Surroundings;
import io.pmfs.settings.TimeSpan;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code pmfs status}: what the mounts of this node hold, and whether that helps. */
@Command(
    name = "status",
    description = {
      "Shows whether a mount works: what readers got from where, how often the source is asked,"
          + " and what room the tiers have; then tiers, usage, hit ratio and staging. Of several"
          + " mounts it shows the first part only.",
      "%nExit status 4 if all reads go to the source and no copies are kept: the tiers have failed,"
          + " have no room, or evict copies before they are read again; a line on standard error"
          + " says which. It is not 4 before the first read, and not while the first epoch fills"
          + " the tiers. It is also 4 while the disk of the state is full or fails: then names and"
          + " copies are not recorded for the next mount. Of a writable mount it is 4 while the source"
          + " refuses changes.%n"
    },
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs status",
      "  pmfs status /mnt/dataset --json",
      "  pmfs status --all-nodes /mnt/dataset         of a cluster",
      "  pmfs status /mnt/dataset --watch"
    })
final class StatusCommand implements Callable<Integer> {
  private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

  /** The daemon itself waits 20 s for the other nodes. */
  private static final Duration ALL_NODES_LIMIT = Duration.ofSeconds(30);

  private static final int HTTP_OK = 200;
  private static final int HTTP_NOT_FOUND = 404;
  private static final Gson GSON =
      new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().serializeNulls().create();

  private static final Gson ONE_LINE =
      new GsonBuilder().disableHtmlEscaping().serializeNulls().create();
  private static final String DEFAULT_INTERVAL = "1";

  private final Invocation invocation;

  @Parameters(
      arity = "0..1",
      paramLabel = "MOUNTPOINT",
      description =
          "A mount point, or a path in a mount. Default: all mounts of this user, and for root also"
              + " those that root made for users; also detached ones whose files are still open.")
  private @Nullable String mountpointText;

  @Option(
      names = "--json",
      description = "Print one JSON object, or an array of them without MOUNTPOINT.")
  private boolean json;

  @Option(
      names = "--all-nodes",
      description =
          "Show all nodes of the cluster, one line each, and the sum. Exit status 1 if a node does"
              + " not answer.")
  private boolean allNodes;

  @Option(
      names = "--watch",
      arity = "0..1",
      fallbackValue = DEFAULT_INTERVAL,
      paramLabel = "SECONDS",
      description =
          "Show rates, hit ratios and latencies every SECONDS (1 if not given), until interrupted"
              + " or unmounted: on a terminal in place, elsewhere one block after another, with"
              + " --json one line each.")
  private @Nullable String watch;

  StatusCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  @Override
  public Integer call() throws MountFailure {
    String interval = watch;
    if (interval == null) {
      return show();
    }
    if (mountpointText == null && interval.contains("/")) {
      mountpointText = interval; // "--watch /mnt/dataset": that was not a number of seconds
      interval = DEFAULT_INTERVAL;
    }
    String text = interval.matches("\\d+") ? interval + "s" : interval;
    return watch(MountFailure.parsing("--watch", text, TimeSpan::parsePositive));
  }

  private int watch(Duration pause) throws MountFailure {
    String wanted = mountpointText;
    String mountpoint = null;
    if (wanted != null) {
      // Fails if it is not mounted.
      mountpoint = find(wanted, Registries.open(invocation.surroundings())).mountpoint();
    }
    StatusWatch watching = new StatusWatch(invocation, new Mounts(mountpoint), pause);
    boolean isThere =
        allNodes
            ? watching.repeat(this::showNodesAgain)
            : json
                ? watching.lines(
                    reports -> ONE_LINE.toJson(wanted == null ? reports : reports.get(0)))
                : watching.blocks();
    if (!isThere) {
      throw new MountFailure(ExitStatus.NOT_MOUNTED, wanted + ": is not mounted any more");
    }
    return ExitStatus.DONE;
  }

  private boolean showNodesAgain(List<Registry.Entry> mounts) throws MountFailure {
    showNodes(mounts, new ArrayList<>());
    invocation.out().println();
    return !invocation.out().checkError();
  }

  /** All mounts, or the wanted one. */
  private final class Mounts implements StatusWatch.Asker {
    private final @Nullable String wanted;
    private Registry.@Nullable Entry known;

    Mounts(@Nullable String wanted) {
      this.wanted = wanted;
    }

    @Override
    public @Nullable List<Registry.Entry> mounts() throws MountFailure {
      Registries registries = Registries.open(invocation.surroundings());
      if (wanted == null) {
        List<Registry.Entry> mounts = new ArrayList<>(registries.running());
        mounts.addAll(registries.detached());
        return mounts;
      }
      Surroundings surroundings = invocation.surroundings();
      Path mountpoint = surroundings.resolveLinks(surroundings.resolve(wanted));
      Registry.Entry entry = registries.find(mountpoint);
      if (entry != null) {
        known = entry;
      }
      MountTable.Mount mount = surroundings.mounts().at(mountpoint);
      // A mount without a daemon may get another one.
      return mount == null || !mount.isPmfs() || known == null ? null : List.of(known);
    }

    @Override
    public StatusReport ask(Registry.Entry mount) throws MountFailure {
      return placed(StatusCommand.ask(mount), mount, Registries.open(invocation.surroundings()));
    }
  }

  private int show() throws MountFailure {
    Registries registries = Registries.open(invocation.surroundings(), invocation::warn);
    String wanted = mountpointText;
    if (allNodes) {
      showNodes(wanted, registries);
    } else if (wanted != null) {
      Registry.Entry mount = find(wanted, registries);
      StatusReport report = counted(ask(mount, registries), mount, registries);
      invocation.out().println(json ? GSON.toJson(report) : StatusTable.of(report));
      invocation.out().flush();
      return exitStatus(List.of(report));
    } else {
      return showAll(registries);
    }
    return ExitStatus.DONE;
  }

  /** Warns of mounts that do not help their readers, or do not record their state. */
  private int exitStatus(List<StatusReport> reports) {
    int status = ExitStatus.DONE;
    for (StatusReport report : reports) {
      Engagement engagement = report.engagement();
      if (engagement != null && engagement.isSourceOnly()) {
        String line = report.mountpoint() + ": all reads go to the source: " + engagement.reason();
        invocation.warn(line.replaceAll("\\p{Cntrl}", "?"));
        status = ExitStatus.PARTLY;
      }
      OutputsReport outputs = report.outputs();
      if (outputs != null && outputs.refused() > 0) {
        String line = report.mountpoint() + ": " + DrainCommand.summary(outputs);
        invocation.warn(line.replaceAll("\\p{Cntrl}", "?"));
        status = ExitStatus.PARTLY;
      }
      if (report.stateFailure() != null) {
        String line = report.mountpoint() + ": the state is not recorded: " + report.stateFailure();
        invocation.warn(line.replaceAll("\\p{Cntrl}", "?"));
        status = ExitStatus.PARTLY;
      }
    }
    return status;
  }

  /** Adds the mount points and their holders. */
  private StatusReport placed(StatusReport asked, Registry.Entry mount, Registries registries)
      throws MountFailure {
    if (mount.devices().isEmpty()) {
      return asked;
    }
    MountTable mounts = invocation.surroundings().mounts();
    List<Path> places = mounts.placesOfAny(mount.devices());
    boolean isKept = places.stream().allMatch(Registry::isKept);
    List<StatusReport.Holder> holders = new ArrayList<>();
    for (Path place : places) {
      if (isKept || !Registry.isKept(place)) {
        holders.add(holder(place, mounts, registries));
      }
    }
    return asked.with(holders);
  }

  /** Also counts what is open in a detached mount. */
  private StatusReport counted(StatusReport asked, Registry.Entry mount, Registries registries)
      throws MountFailure {
    StatusReport report = placed(asked, mount, registries);
    if (report.detached() == null || mount.devices().isEmpty()) {
      return report;
    }
    return report.with(
        MountHolders.ofDetached(
            mount.devices().get(0),
            invocation.surroundings().root(),
            ProcessHandle.current().pid()));
  }

  private static StatusReport.Holder holder(Path place, MountTable mounts, Registries registries)
      throws MountFailure {
    MountTable.Mount mount = mounts.at(place);
    Holder known = mount == null ? null : registries.holder(mount);
    return known == null
        ? new StatusReport.Holder(place.toString(), null, null, null, null)
        : new StatusReport.Holder(
            place.toString(),
            known.user(),
            known.pid() == 0 ? null : known.pid(),
            known.job(),
            known.since());
  }

  private int showAll(Registries registries) throws MountFailure {
    List<StatusReport> reports = new ArrayList<>();
    List<MountFailure> silent = new ArrayList<>();
    for (Registry.Entry entry : registries.awaitAll(silent::add)) {
      try {
        reports.add(counted(ask(entry, registries), entry, registries));
      } catch (MountFailure e) {
        silent.add(e);
      }
    }
    for (Registry.Entry entry : registries.detached()) {
      try {
        reports.add(counted(ask(entry), entry, registries));
      } catch (MountFailure e) {
        // Its last file may just have been closed.
        if (registries.detached().contains(entry)) {
          silent.add(e);
        }
      }
    }
    silent.forEach(failure -> invocation.warn(failure.line()));
    if (json) {
      invocation.out().println(GSON.toJson(reports));
    } else if (reports.isEmpty() && silent.isEmpty()) {
      invocation.out().println("No mounts.");
    } else {
      invocation.out().println(StatusTable.of(reports));
    }
    invocation.out().flush();
    int status = exitStatus(reports);
    if (!silent.isEmpty()) {
      throw new MountFailure(ExitStatus.FAILED, "not all mounts answered; see the lines above");
    }
    return status;
  }

  private void showNodes(@Nullable String wanted, Registries registries) throws MountFailure {
    List<MountFailure> silent = new ArrayList<>();
    showNodes(
        wanted == null ? registries.awaitAll(silent::add) : List.of(find(wanted, registries)),
        silent);
  }

  /**
   * Shows the reports of the nodes of some mounts.
   *
   * @param silent why other mounts are missing
   */
  private void showNodes(List<Registry.Entry> mounts, List<MountFailure> silent)
      throws MountFailure {
    List<NodesReport> reports = new ArrayList<>();
    for (Registry.Entry mount : mounts) {
      try {
        NodesReport report = askForNodes(mount);
        if (report != null) {
          reports.add(report);
        } else if (mountpointText != null) {
          throw new MountFailure(
              ExitStatus.FAILED, mount.mountpoint() + ": " + ControlServer.NO_CLUSTER);
        }
      } catch (MountFailure e) {
        if (mountpointText != null) {
          throw e;
        }
        silent.add(e);
      }
    }
    silent.forEach(failure -> invocation.warn(failure.line()));
    if (json) {
      invocation.out().println(GSON.toJson(mountpointText == null ? reports : reports.get(0)));
    } else if (reports.isEmpty() && silent.isEmpty()) {
      invocation.out().println("No mount is in a cluster.");
    } else {
      invocation.out().println(String.join("\n\n", reports.stream().map(NodesTable::of).toList()));
    }
    invocation.out().flush();
    if (!silent.isEmpty() || !reports.stream().allMatch(NodesReport::isWhole)) {
      throw new MountFailure(ExitStatus.FAILED, "not all nodes answered; see the lines above");
    }
  }

  /** Null if the mount is in no cluster. */
  private static @Nullable NodesReport askForNodes(Registry.Entry mount) throws MountFailure {
    ControlClient.Answer answer = get(mount, "/status?all-nodes=true", ALL_NODES_LIMIT);
    if (answer.status() == HTTP_NOT_FOUND) {
      return null;
    }
    NodesReport report = parse(mount, answer, NodesReport.class);
    if (report.nodes() == null || report.sum() == null) {
      throw new MountFailure(
          ExitStatus.FAILED,
          mount.mountpoint() + ": its daemon is older than this command: pmfs upgrade");
    }
    return report;
  }

  /** The mount at a path, or that of the dataset that has the path. */
  private Registry.Entry find(String text, Registries registries) throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    Path mountpoint = surroundings.resolveLinks(surroundings.resolve(text));
    Registry.Entry entry = registries.await(mountpoint);
    MountTable.Mount mount = surroundings.mounts().at(mountpoint);
    if (entry != null) {
      return mount == null ? entry : entry.named(mountpoint);
    }
    if (mount != null && mount.isPmfs()) {
      throw registries.absence(mountpoint);
    }
    return TaskTarget.find(List.of(text), registries, surroundings).dataset().mount();
  }

  /** Asks the next daemon if this one is being replaced. */
  private static StatusReport ask(Registry.Entry mount, Registries registries) throws MountFailure {
    try {
      return ask(mount);
    } catch (MountFailure e) {
      boolean isSlow = e.getCause() != null && e.getCause().getCause() instanceof TimeoutException;
      Registry.Entry successor = isSlow ? null : registries.awaitSuccessor(mount);
      if (successor == null) {
        throw e;
      }
      return ask(successor);
    }
  }

  static StatusReport ask(Registry.Entry mount) throws MountFailure {
    return parse(mount, get(mount, "/status", ANSWER_LIMIT), StatusReport.class);
  }

  private static ControlClient.Answer get(Registry.Entry mount, String uri, Duration limit)
      throws MountFailure {
    try {
      return ControlClient.ask(Path.of(mount.socket()), HttpMethod.GET, uri, limit);
    } catch (IOException e) {
      throw silent(mount, e);
    }
  }

  private static <T> T parse(Registry.Entry mount, ControlClient.Answer answer, Class<T> type)
      throws MountFailure {
    try {
      T report = answer.status() == HTTP_OK ? GSON.fromJson(answer.body(), type) : null;
      if (report != null) {
        return report;
      }
      throw new IOException("it answered with status " + answer.status());
    } catch (IOException | JsonSyntaxException e) {
      throw silent(mount, e);
    }
  }

  private static MountFailure silent(Registry.Entry mount, Exception e) {
    return new MountFailure(
        ExitStatus.FAILED,
        "%s: pid %d does not report its status: %s; see %s"
            .formatted(mount.mountpoint(), mount.pid(), e.getMessage(), mount.logFile()),
        e);
  }
}
