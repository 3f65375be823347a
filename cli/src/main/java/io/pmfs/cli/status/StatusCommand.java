package io.pmfs.cli.status;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonSyntaxException;
import io.netty.handler.codec.http.HttpMethod;
import io.pmfs.cli.control.ControlClient;
import io.pmfs.cli.control.MountClient;
import io.pmfs.cli.control.TaskTarget;
import io.pmfs.cli.mount.MountHolders;
import io.pmfs.cli.tasks.DrainCommand;
import io.pmfs.cli.tasks.DrainProgress;
import io.pmfs.daemon.Invocation;
import io.pmfs.daemon.control.ControlServer;
import io.pmfs.daemon.report.Engagement;
import io.pmfs.daemon.report.MountReport;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.OutputsReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.machine.TimeSpan;
import io.pmfs.metadata.PathText;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.KnownMounts;
import io.pmfs.mounts.MountOwner;
import io.pmfs.mounts.MountViewers;
import io.pmfs.mounts.Registry;
import io.pmfs.mounts.StandIn;
import io.pmfs.places.Surroundings;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code pmfs status}: the state of this node's mounts, and whether they help. */
@Command(
    name = "status",
    description = {
      "Shows whether a mount works, and what it does. First where readers' bytes came from, how"
          + " often the source is asked, and how much room the tiers have; then all details. For"
          + " several mounts, shows only the first part.",
      "%nExit status 4 if all reads go to the source and no copies are kept: the tiers have failed,"
          + " have no room, or evict copies before they are read again; a line on standard error"
          + " has the reason. It is not 4 before the first read, nor while the first epoch fills"
          + " the tiers. It is also 4 while the disk of the state is full or fails, so that names"
          + " and copies are not recorded for the next mount; while a thread of the daemon keeps"
          + " failing, for example for lack of memory; for ten minutes after a request of a reader"
          + " failed, for example because of an error of the source; and if daemons kept dying"
          + " until the source itself was mounted in their place. For a writable mount it is 4"
          + " while the source refuses changes, or changes wait for an unreachable node. In a"
          + " cluster it is 4 while expected nodes are missing.%n"
    },
    sortOptions = false,
    footerHeading = "%nExamples:%n",
    footer = {
      "  pmfs status",
      "  pmfs status /mnt/dataset --json",
      "  pmfs status --all-nodes /mnt/dataset         of a cluster",
      "  pmfs status /mnt/dataset --watch"
    })
public final class StatusCommand implements Callable<Integer> {
  private static final Duration ANSWER_LIMIT = Duration.ofSeconds(10);

  /** The time limit for all daemons of another user. */
  private static final Duration STRANGER_LIMIT = Duration.ofSeconds(5);

  /** The size limit for all answers of another user's daemons. */
  private static final int STRANGER_BYTES = 512 << 10;

  /** The daemon itself waits 20 s for the other nodes. */
  private static final String OF_ALL_NODES = "/status?all-nodes=true";

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
          "A mount point, or a path in a mount. Default: all mounts of this user and, for root,"
              + " those that root made for users, including detached ones with open files.")
  private @Nullable String mountpointText;

  @Option(
      names = "--json",
      description = "Print one JSON object, or an array of them without MOUNTPOINT.")
  private boolean json;

  @Option(
      names = "--all-nodes",
      description =
          "Show all nodes of the cluster, one line each, and the sum. Exit status 1 if a node does"
              + " not answer, 4 if expected nodes are missing.")
  private boolean allNodes;

  @Option(
      names = "--watch",
      arity = "0..1",
      fallbackValue = DEFAULT_INTERVAL,
      paramLabel = "SECONDS",
      description =
          "Show rates, hit ratios and latencies every SECONDS (default: 1), until interrupted or"
              + " unmounted: in place on a terminal, elsewhere one block after another, with --json"
              + " one line each.")
  private @Nullable String watch;

  public StatusCommand(Invocation invocation) {
    this.invocation = invocation;
  }

  @Override
  public Integer call() throws MountFailure {
    String interval = watch;
    if (interval == null) {
      return show();
    }
    if (mountpointText == null && interval.contains("/")) {
      mountpointText = interval; // "--watch /mnt/dataset": not a number of seconds
      interval = DEFAULT_INTERVAL;
    }
    String text = interval.matches("\\d+") ? interval + "s" : interval;
    return watch(MountFailure.parsing("--watch", text, TimeSpan::parsePositive));
  }

  private int watch(Duration pause) throws MountFailure {
    String wanted = mountpointText;
    String mountpoint = null;
    if (wanted != null) {
      // Throws if it is not mounted.
      mountpoint = find(wanted, KnownMounts.open(invocation.surroundings())).mountpoint();
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
      throw new MountFailure(ExitStatus.NOT_MOUNTED, wanted + ": no longer mounted");
    }
    return ExitStatus.DONE;
  }

  private boolean showNodesAgain(List<DaemonRecord> mounts) throws MountFailure {
    showNodes(mounts, new ArrayList<>());
    invocation.out().println();
    return !invocation.out().checkError();
  }

  /** All mounts, or the wanted one. */
  private final class Mounts implements StatusWatch.Asker {
    private final @Nullable String wanted;
    private @Nullable DaemonRecord known;

    Mounts(@Nullable String wanted) {
      this.wanted = wanted;
    }

    @Override
    public @Nullable List<DaemonRecord> mounts() throws MountFailure {
      KnownMounts knownMounts = KnownMounts.open(invocation.surroundings());
      if (wanted == null) {
        List<DaemonRecord> mounts = new ArrayList<>(knownMounts.running());
        mounts.addAll(knownMounts.detached());
        return mounts;
      }
      Surroundings surroundings = invocation.surroundings();
      Path mountpoint = surroundings.resolveLinks(surroundings.resolve(wanted));
      DaemonRecord entry = knownMounts.find(mountpoint);
      if (entry != null) {
        known = entry;
      }
      MountTable.Mount mount = surroundings.mounts().at(mountpoint);
      // A mount without a daemon may get a new one.
      return mount == null || !mount.isPmfs() || known == null ? null : List.of(known);
    }

    @Override
    public List<Replies.Reply<StatusReport>> ask(List<DaemonRecord> mounts) throws MountFailure {
      KnownMounts knownMounts = KnownMounts.open(invocation.surroundings());
      return replies(
          mounts, knownMounts, mount -> placed(StatusCommand.ask(mount), mount, knownMounts));
    }
  }

  private int show() throws MountFailure {
    KnownMounts knownMounts = KnownMounts.open(invocation.surroundings(), invocation::warn);
    String wanted = mountpointText;
    StandIn standIn = allNodes || wanted == null ? null : standIn(wanted, knownMounts);
    if (allNodes) {
      return showNodes(wanted, knownMounts);
    } else if (standIn != null) {
      return show(StatusReport.of(standIn));
    } else if (wanted != null) {
      DaemonRecord mount = find(wanted, knownMounts);
      return show(counted(ask(mount, knownMounts), mount, knownMounts));
    } else {
      return showAll(knownMounts);
    }
  }

  private int show(StatusReport report) {
    if (json) {
      invocation.showJson(GSON.toJson(report));
    } else {
      invocation.show(StatusTable.of(report));
    }
    invocation.out().flush();
    return exitStatus(List.of(report));
  }

  private @Nullable StandIn standIn(String text, KnownMounts knownMounts) throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    return knownMounts.standIn(surroundings.resolveLinks(surroundings.resolve(text)));
  }

  /** Warns about mounts that do not help their readers or cannot record their state. */
  private int exitStatus(List<StatusReport> reports) {
    int status = ExitStatus.DONE;
    for (StatusReport report : reports) {
      for (String warning : warnings(report)) {
        invocation.warn(warning);
        status = ExitStatus.PARTLY;
      }
    }
    return status;
  }

  private static List<String> warnings(StatusReport report) {
    List<String> warnings = new ArrayList<>();
    Engagement engagement = report.dataset().engagement();
    if (engagement != null && engagement.isSourceOnly()) {
      warnings.add(
          report.mount().mountpoint() + ": all reads go to the source: " + engagement.reason());
    }
    OutputsReport outputs = report.outputs();
    if (outputs != null && (outputs.refused() > 0 || outputs.isNodeAway())) {
      warnings.add(report.mount().mountpoint() + ": " + DrainCommand.summary(outputs));
    }
    if (outputs != null && report.source().sourceAbsence() != null) {
      warnings.add(
          report.mount().mountpoint()
              + ": source: "
              + PathText.printable(report.source().sourceAbsence()));
    }
    String absence = report.cluster() == null ? null : report.cluster().absence();
    if (absence != null) {
      warnings.add(report.mount().mountpoint() + ": " + absence);
    }
    String failures = StatusHeadline.failures(report);
    if (failures != null) {
      warnings.add(report.mount().mountpoint() + ": " + PathText.printable(failures));
    }
    if (report.state().stateFailure() != null) {
      warnings.add(
          report.mount().mountpoint()
              + ": the state is not recorded: "
              + report.state().stateFailure());
    }
    if (report.daemon().threadFailure() != null) {
      warnings.add(
          report.mount().mountpoint()
              + ": a thread of its daemon fails: "
              + report.daemon().threadFailure());
    }
    return warnings;
  }

  private List<Replies.Reply<StatusReport>> replies(
      List<DaemonRecord> mounts, KnownMounts knownMounts, Replies.Asker<StatusReport> own) {
    Map<Long, AtomicInteger> left = new ConcurrentHashMap<>();
    return Replies.of(
        mounts,
        knownMounts::owner,
        own,
        mount -> {
          ControlClient.Answer answer = get(mount, "/status", STRANGER_LIMIT);
          takeRoom(mount, answer, left, knownMounts);
          StatusReport asked = parse(mount, answer, StatusReport.class);
          StatusReport report =
              mount.detached()
                  ? counted(asked, mount, knownMounts)
                  : placed(asked, mount, knownMounts);
          requireShowable(report);
          return report;
        },
        STRANGER_LIMIT.multipliedBy(2));
  }

  /** Limits the memory for the answers of one other user. */
  private static void takeRoom(
      DaemonRecord mount,
      ControlClient.Answer answer,
      Map<Long, AtomicInteger> left,
      KnownMounts knownMounts)
      throws MountFailure {
    AtomicInteger room =
        left.computeIfAbsent(knownMounts.owner(mount), user -> new AtomicInteger(STRANGER_BYTES));
    if (room.addAndGet(-answer.body().length()) < 0) {
      throw new MountFailure(
          ExitStatus.FAILED,
          mount.mountpoint() + ": the answers of its user's daemons are too long");
    }
  }

  /** Throws some exception if the report cannot be shown in every form. */
  private static void requireShowable(StatusReport report) {
    int characters =
        StatusTable.of(report).length()
            + StatusTable.of(List.of(report, report)).length()
            + WatchBlock.of(report, null, 0).size()
            + warnings(report).size()
            + GSON.toJson(report).length();
    if (characters == 0 || report.mount().mountpoint() == null) {
      throw new IllegalArgumentException("not a report");
    }
  }

  /** Adds the mount points and their holders. */
  private StatusReport placed(StatusReport asked, DaemonRecord mount, KnownMounts knownMounts)
      throws MountFailure {
    if (mount.devices().isEmpty()) {
      return asked;
    }
    MountTable mounts = invocation.surroundings().mounts();
    List<Path> places = mounts.places(mount::shows);
    boolean isKept = places.stream().allMatch(Registry::isKept);
    List<MountReport.Holder> holders = new ArrayList<>();
    for (Path place : places) {
      if (isKept || !Registry.isKept(place)) {
        holders.add(holder(place, mounts, knownMounts));
      }
    }
    return asked.with(asked.mount().with(holders));
  }

  /** Adds the open files of a detached mount. */
  private StatusReport counted(StatusReport asked, DaemonRecord mount, KnownMounts knownMounts)
      throws MountFailure {
    StatusReport report = placed(asked, mount, knownMounts);
    if (report.mount().detached() == null || mount.devices().isEmpty()) {
      return report;
    }
    String device = mount.devices().get(0);
    MountReport.Detached seen =
        MountHolders.ofDetached(
            device, invocation.surroundings().root(), ProcessHandle.current().pid());
    List<String> holders = new ArrayList<>(seen.openBy());
    new MountViewers(invocation.surroundings())
        .elsewhere(device, mount.source())
        .forEach(viewer -> holders.add(viewer + " has the mount in another namespace"));
    return report.with(report.mount().with(new MountReport.Detached(seen.openFiles(), holders)));
  }

  private static MountReport.Holder holder(Path place, MountTable mounts, KnownMounts knownMounts)
      throws MountFailure {
    MountTable.Mount mount = mounts.at(place);
    MountOwner known = mount == null ? null : knownMounts.holder(mount);
    return known == null
        ? new MountReport.Holder(place.toString(), null, null, null, null)
        : new MountReport.Holder(
            place.toString(),
            known.user(),
            known.pid() == 0 ? null : known.pid(),
            known.job(),
            known.since());
  }

  private int showAll(KnownMounts knownMounts) throws MountFailure {
    List<StatusReport> reports = new ArrayList<>();
    List<MountFailure> silent = new ArrayList<>();
    List<DaemonRecord> mounts = new ArrayList<>(knownMounts.awaitAll(silent::add));
    mounts.addAll(knownMounts.detached());
    for (Replies.Reply<StatusReport> reply :
        replies(
            mounts,
            knownMounts,
            mount ->
                counted(
                    mount.detached() ? ask(mount) : ask(mount, knownMounts), mount, knownMounts))) {
      StatusReport report = reply.value();
      MountFailure failure = reply.failure();
      if (report != null) {
        reports.add(report);
      } else if (failure != null && !isGone(reply.mount(), knownMounts)) {
        silent.add(failure);
      }
    }
    knownMounts.standIns().forEach(standIn -> reports.add(StatusReport.of(standIn)));
    silent.forEach(failure -> invocation.warn(failure.line()));
    if (json) {
      invocation.showJson(GSON.toJson(reports));
    } else if (reports.isEmpty() && silent.isEmpty()) {
      invocation.show("No mounts.");
    } else {
      invocation.show(StatusTable.of(reports));
    }
    invocation.out().flush();
    int status = exitStatus(reports);
    if (!silent.isEmpty()) {
      throw new MountFailure(ExitStatus.FAILED, "not all mounts answered; see the lines above");
    }
    return status;
  }

  /** Whether a detached mount of this user has just ended. */
  private static boolean isGone(DaemonRecord mount, KnownMounts knownMounts) throws MountFailure {
    return mount.detached()
        && knownMounts.owner(mount) < 0
        && !knownMounts.detached().contains(mount);
  }

  private int showNodes(@Nullable String wanted, KnownMounts knownMounts) throws MountFailure {
    List<MountFailure> silent = new ArrayList<>();
    return showNodes(
        wanted == null ? knownMounts.awaitAll(silent::add) : List.of(find(wanted, knownMounts)),
        silent);
  }

  /**
   * Shows the reports of the nodes of some mounts.
   *
   * @param silent the failures of other mounts
   * @return the exit status
   */
  private int showNodes(List<DaemonRecord> mounts, List<MountFailure> silent) throws MountFailure {
    List<NodesReport> reports = new ArrayList<>();
    KnownMounts knownMounts = KnownMounts.open(invocation.surroundings());
    for (Replies.Reply<Optional<NodesReport>> reply :
        Replies.of(
            mounts,
            knownMounts::owner,
            this::askForNodes,
            StatusCommand::askStrangerForNodes,
            ALL_NODES_LIMIT)) {
      MountFailure failure = reply.failure();
      Optional<NodesReport> report = reply.value();
      if (report != null && report.isPresent()) {
        reports.add(report.get());
      } else if (report != null && mountpointText != null) {
        throw new MountFailure(
            ExitStatus.FAILED, reply.mount().mountpoint() + ": " + ControlServer.NO_CLUSTER);
      } else if (failure != null && mountpointText != null) {
        throw failure;
      } else if (failure != null) {
        silent.add(failure);
      }
    }
    silent.forEach(failure -> invocation.warn(failure.line()));
    if (json) {
      invocation.showJson(GSON.toJson(mountpointText == null ? reports : reports.get(0)));
    } else if (reports.isEmpty() && silent.isEmpty()) {
      invocation.show("No mount is in a cluster.");
    } else {
      invocation.show(String.join("\n\n", reports.stream().map(NodesTable::of).toList()));
    }
    invocation.out().flush();
    if (!silent.isEmpty() || !reports.stream().allMatch(NodesReport::isWhole)) {
      throw new MountFailure(ExitStatus.FAILED, "not all nodes answered; see the lines above");
    }
    int status = ExitStatus.DONE;
    for (NodesReport report : reports) {
      String absence = report.absence();
      if (absence != null) {
        invocation.warn(report.mountpoint() + ": " + absence);
        status = ExitStatus.PARTLY;
      }
      Optional<OutputsReport.Away> away = NodesTable.away(report);
      if (away.isPresent()) {
        invocation.warn(report.mountpoint() + ": " + DrainProgress.text(away.get()));
        status = ExitStatus.PARTLY;
      }
    }
    return status;
  }

  /** Throws some exception if the answer cannot be shown. */
  private static Optional<NodesReport> askStrangerForNodes(DaemonRecord mount) throws MountFailure {
    Optional<NodesReport> report = nodes(mount, get(mount, OF_ALL_NODES, ALL_NODES_LIMIT));
    if (report.isPresent()
        && NodesTable.of(report.get()).length() + GSON.toJson(report.get()).length() == 0) {
      throw new IllegalArgumentException("not a report");
    }
    return report;
  }

  private Optional<NodesReport> askForNodes(DaemonRecord mount) throws MountFailure {
    MountClient client = new MountClient(mount, invocation.surroundings());
    try {
      ControlClient.Answer answer = client.ask(HttpMethod.GET, OF_ALL_NODES, ALL_NODES_LIMIT);
      return nodes(client.daemon(), answer);
    } catch (IOException e) {
      throw silent(client.daemon(), e);
    }
  }

  /** Empty if the mount is not in a cluster. */
  private static Optional<NodesReport> nodes(DaemonRecord mount, ControlClient.Answer answer)
      throws MountFailure {
    if (answer.status() == HTTP_NOT_FOUND) {
      return Optional.empty();
    }
    NodesReport report = parse(mount, answer, NodesReport.class);
    if (report.nodes() == null || report.sum() == null) {
      throw new MountFailure(
          ExitStatus.FAILED,
          mount.mountpoint() + ": its daemon is older than this command: pmfs upgrade");
    }
    return Optional.of(report);
  }

  /** The mount at a mount point, or the mount of the dataset that contains the path. */
  private DaemonRecord find(String text, KnownMounts knownMounts) throws MountFailure {
    Surroundings surroundings = invocation.surroundings();
    Path mountpoint = surroundings.resolveLinks(surroundings.resolve(text));
    DaemonRecord entry = knownMounts.await(mountpoint);
    MountTable.Mount mount = surroundings.mounts().at(mountpoint);
    if (entry != null) {
      return mount == null ? entry : entry.withMountpoint(mountpoint);
    }
    if (mount != null && mount.isPmfs()) {
      throw knownMounts.absence(mountpoint);
    }
    return TaskTarget.find(List.of(text), knownMounts, surroundings).dataset().mount();
  }

  /** Asks the daemon, waiting for its successor if it is being replaced. */
  private static StatusReport ask(DaemonRecord mount, KnownMounts knownMounts) throws MountFailure {
    try {
      return ask(mount);
    } catch (MountFailure e) {
      boolean isSlow = e.getCause() != null && e.getCause().getCause() instanceof TimeoutException;
      DaemonRecord successor = isSlow ? null : knownMounts.awaitSuccessor(mount);
      if (successor == null) {
        throw e;
      }
      return ask(successor);
    }
  }

  private static StatusReport ask(DaemonRecord mount) throws MountFailure {
    return parse(mount, get(mount, "/status", ANSWER_LIMIT), StatusReport.class);
  }

  /** Asks the daemon, or its successor if it is gone. */
  static StatusReport ask(MountClient client) throws MountFailure {
    try {
      ControlClient.Answer answer = client.ask(HttpMethod.GET, "/status", ANSWER_LIMIT);
      return parse(client.daemon(), answer, StatusReport.class);
    } catch (IOException e) {
      throw silent(client.daemon(), e);
    }
  }

  private static ControlClient.Answer get(DaemonRecord mount, String uri, Duration limit)
      throws MountFailure {
    try {
      return ControlClient.ask(Path.of(mount.socket()), HttpMethod.GET, uri, limit);
    } catch (IOException e) {
      throw silent(mount, e);
    }
  }

  private static <T> T parse(DaemonRecord mount, ControlClient.Answer answer, Class<T> type)
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

  private static MountFailure silent(DaemonRecord mount, Exception e) {
    return new MountFailure(
        ExitStatus.FAILED,
        "%s: pid %d does not report its status: %s; see %s"
            .formatted(mount.mountpoint(), mount.pid(), e.getMessage(), mount.logFile()),
        e);
  }
}
