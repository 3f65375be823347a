package io.pmfs.daemon.outputs;

import io.pmfs.cluster.OutputCluster;
import io.pmfs.cluster.client.Peers;
import io.pmfs.cluster.server.NodeRequests;
import io.pmfs.contents.OutputDirectories;
import io.pmfs.daemon.control.NodeResource;
import io.pmfs.daemon.dataset.DatasetSource;
import io.pmfs.daemon.dataset.KernelSession;
import io.pmfs.daemon.dataset.MountedOutputs;
import io.pmfs.daemon.dataset.Opened;
import io.pmfs.daemon.dataset.ServedMount;
import io.pmfs.daemon.process.Readiness;
import io.pmfs.daemon.report.BridgeReport;
import io.pmfs.daemon.report.ClusterReport;
import io.pmfs.daemon.report.DaemonReport;
import io.pmfs.daemon.report.DatasetReport;
import io.pmfs.daemon.report.KernelReport;
import io.pmfs.daemon.report.MissingNode;
import io.pmfs.daemon.report.MountReport;
import io.pmfs.daemon.report.OutputsReport;
import io.pmfs.daemon.report.SourceReport;
import io.pmfs.daemon.report.StateReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.tasks.Drains;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.daemon.tasks.NoTasks;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.posix.FsException;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.WritableFileSystem;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A writable mount, assembled by {@link OutputWiring}. */
final class ServedOutputs extends ServedMount implements MountedOutputs {
  private static final Logger log = LoggerFactory.getLogger(ServedOutputs.class);

  private static final Duration LAST_REQUESTS = Duration.ofSeconds(5);

  /**
   * How long to wait at the end for changes that a command has not waited for. Shorter than
   * MountCommand's limit for a stop after a signal.
   */
  private static final Duration LAST_CHANGES = Duration.ofSeconds(12);

  private final OutputDirectories directories;
  private final @Nullable OutputCluster cluster;
  private final WritableFileSystem outputs;
  private final Readiness readiness;
  private final Opened opened;
  private final DatasetSource source;
  private final KeptTasks tasks = new KeptTasks(new NoTasks(), null);
  private final Drains drains;
  private volatile boolean waits = true;

  /**
   * @param readiness the time limit for mounting
   * @param opened parts to close before the directories
   */
  ServedOutputs(
      KernelSession session,
      DatasetSource source,
      OutputDirectories directories,
      @Nullable OutputCluster cluster,
      WritableFileSystem outputs,
      Readiness readiness,
      Opened opened) {
    super(session, source, LAST_REQUESTS);
    this.source = source;
    this.directories = directories;
    this.cluster = cluster;
    this.outputs = outputs;
    this.readiness = readiness;
    this.opened = opened;
    this.drains = new Drains(outputs, this::absent);
    if (cluster != null) {
      NodeResource answers = new NodeResource(this::status, tasks);
      cluster.use(
          (method, path, body) ->
              (path.equals("node") ? answers : NodeRequests.NONE).answer(method, path, body));
    }
  }

  private List<MissingNode> absent() {
    ClusterReport report = clusterReport();
    return report == null ? List.of() : report.absent();
  }

  @Override
  protected void serve() throws MountFailure {
    mount(readiness.leftForMount());
    long waiting = outputs.drainStatus().waitingChanges();
    if (waiting > 0) {
      log.info("{} changes of an earlier daemon are on their way to the source", waiting);
    }
  }

  @Override
  public String description() {
    return "experimental: changes are written to the tiers and copied to the source";
  }

  @Override
  public StatusReport status() {
    return new StatusReport(
        MountReport.of(session.settings(), isAtMountpoint()),
        DaemonReport.ofThisProcess(),
        new BridgeReport("kernel", session.bridgeReason(), "page-cache", "files may change"),
        new StateReport(state().toString(), outputs.stateFailure()),
        DatasetReport.NONE,
        new SourceReport(sourceAbsence()),
        KernelReport.of(session.bridge().latencies(), requests(), null),
        clusterReport(),
        null,
        OutputsReport.of(outputs.drainStatus()));
  }

  private @Nullable String sourceAbsence() {
    String failure = outputs.sourceFailure();
    return failure == null ? source.absence() : failure;
  }

  @Override
  protected @Nullable Peers peers() {
    return cluster;
  }

  private @Nullable ClusterReport clusterReport() {
    return cluster == null ? null : ClusterReport.of(cluster.status());
  }

  private Path state() {
    return directories.state();
  }

  @Override
  public KeptTasks tasks() {
    return tasks;
  }

  @Override
  public Drains drains() {
    return drains;
  }

  @Override
  public void waitForSource(boolean isWanted) {
    waits = isWanted;
  }

  @Override
  public long progress() {
    DrainStatus status = outputs.drainStatus();
    return session.bridge().answered() + status.drainedBytes() + status.drainedChanges();
  }

  /**
   * Always true, because writers without space and readers of uncached data wait for the source.
   */
  @Override
  public boolean waitsForSource() {
    return true;
  }

  @Override
  public boolean locksRoot() {
    return session.bridge().waitsInRoot();
  }

  @Override
  protected void suspend() {
    closeParts();
    directories.close();
  }

  @Override
  protected boolean finish(boolean wasStarted) {
    boolean isDrained =
        wasStarted
            ? closeLast() && drainLast()
            : OutputsReport.of(outputs.drainStatus()).isDrained();
    boolean isOwner = cluster == null || cluster.isOwner();
    if (cluster != null) {
      cluster.sayGoodbye();
      if (isOwner) {
        cluster.close(); // Until then, other nodes may have made changes.
      }
    }
    isDrained = isDrained && (!isOwner || drainLast());
    closeParts();
    boolean isSaved = isDrained && forgetAll();
    directories.close();
    return dropIfWanted(directories.tiers(), state()) && isSaved;
  }

  /** Ends the session; returns whether the journal has all changes. */
  private boolean closeLast() {
    try {
      outputs.endSession();
      return true;
    } catch (FsException e) {
      log.warn(
          "{}: the last changes could not be recorded: {}; the next mount, or pmfs drain --state"
              + " {}, copies them to the source",
          session.settings().mountpoint(),
          Reason.of(e),
          state());
      return false;
    }
  }

  /** Returns whether the source has all changes; otherwise logs what is missing. */
  private boolean drainLast() {
    boolean isDrained = awaitSource(waits ? LAST_CHANGES : Duration.ZERO);
    OutputsReport left = OutputsReport.of(outputs.drainStatus());
    if (isDrained && left.isDrained()) {
      return true;
    }
    log.warn(
        "{}: {} changes with {} bytes are not at the source {} yet; {} keeps them until the next"
            + " mount or pmfs drain --state copies them there",
        session.settings().mountpoint(),
        left.waitingChanges(),
        left.dirtyBytes(),
        session.settings().source().path(),
        state());
    return false;
  }

  /** Waits even if interrupted, because an interrupt ends only the wait for the session. */
  private boolean awaitSource(Duration limit) {
    long end = System.nanoTime() + limit.toNanos();
    boolean isInterrupted = false;
    try {
      while (true) {
        long left = Math.max(0, end - System.nanoTime());
        try {
          return outputs.drain(left / 1_000_000);
        } catch (InterruptedException e) {
          isInterrupted = true;
          if (left == 0) {
            return false;
          }
        }
      }
    } finally {
      if (isInterrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private void closeParts() {
    drains.close();
    tasks.close();
    opened.close();
  }

  /**
   * Removes the directories' marks, because the source has everything; false if some may remain.
   */
  private boolean forgetAll() {
    try {
      directories.clear();
      return true;
    } catch (IOException e) {
      log.warn("{}: {}", state(), Reason.of(e));
      return false;
    }
  }
}
