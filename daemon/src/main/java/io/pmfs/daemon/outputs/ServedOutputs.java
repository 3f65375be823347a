package io.pmfs.daemon.outputs;

import io.pmfs.cluster.OutputCluster;
import io.pmfs.cluster.server.NodeRequests;
import io.pmfs.contents.OutputDirectories;
import io.pmfs.daemon.control.NodeResource;
import io.pmfs.daemon.dataset.DatasetSource;
import io.pmfs.daemon.dataset.DatasetWiring;
import io.pmfs.daemon.dataset.MountedDataset;
import io.pmfs.daemon.process.Readiness;
import io.pmfs.daemon.report.BridgeReport;
import io.pmfs.daemon.report.ClusterReport;
import io.pmfs.daemon.report.DaemonReport;
import io.pmfs.daemon.report.DatasetReport;
import io.pmfs.daemon.report.KernelReport;
import io.pmfs.daemon.report.MissingNode;
import io.pmfs.daemon.report.MountReport;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.OutputsReport;
import io.pmfs.daemon.report.SourceReport;
import io.pmfs.daemon.report.StateReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.daemon.tasks.Drains;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.daemon.tasks.NoTasks;
import io.pmfs.fuse.Bridge;
import io.pmfs.fuse.mounting.MountException;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.places.SourceIdentity;
import io.pmfs.posix.FsException;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.SessionSettings;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.WritableFileSystem;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A mount that can be changed, assembled by {@link OutputWiring}. */
final class ServedOutputs implements MountedDataset {
  private static final Logger log = LoggerFactory.getLogger(ServedOutputs.class);

  private static final Duration LOOK_AT_SOURCE = Duration.ofSeconds(2);
  private static final Duration HAND_OVER = Duration.ofSeconds(30);
  private static final Duration ALL_NODES = Duration.ofSeconds(20);
  private static final Duration LAST_REQUESTS = Duration.ofSeconds(5);

  /**
   * For what was written after a command had waited for the source, and for a mount that others
   * unmount. Shorter than a stop after a signal may take (MountCommand).
   */
  private static final Duration LAST_CHANGES = Duration.ofSeconds(12);

  private final Parts parts;
  private final KeptTasks tasks = new KeptTasks(new NoTasks(), null);
  private final Drains drains;
  private final AtomicBoolean closed = new AtomicBoolean();
  private volatile boolean waits = true;
  private volatile boolean started;
  private volatile boolean purge;

  /**
   * What it is made of.
   *
   * @param readiness the time until it must be mounted
   * @param opened what must be closed before the directories, in this order
   */
  record Parts(
      MountSettings settings,
      SessionSettings session,
      DatasetSource source,
      OutputDirectories directories,
      @Nullable OutputCluster cluster,
      WritableFileSystem outputs,
      Bridge bridge,
      RequestLog requests,
      String bridgeReason,
      boolean isResumed,
      Readiness readiness,
      Deque<AutoCloseable> opened) {}

  ServedOutputs(Parts parts) {
    this.parts = parts;
    this.drains = new Drains(parts.outputs(), this::absent);
    OutputCluster cluster = parts.cluster();
    if (cluster != null) {
      NodeResource answers = new NodeResource(this::status, tasks);
      // A writable mount has no tasks.
      cluster.use(
          (method, path, body) ->
              (path.equals("node") ? answers : NodeRequests.NONE).answer(method, path, body));
    }
  }

  private List<MissingNode> absent() {
    ClusterReport cluster = cluster();
    return cluster == null ? List.of() : cluster.absent();
  }

  @Override
  public void start() throws MountFailure {
    started = true;
    try {
      parts.bridge().mount(parts.readiness().leftForMount());
    } catch (MountException e) {
      throw DatasetWiring.failure(e);
    }
    long waiting = parts.outputs().drainStatus().waitingChanges();
    if (waiting > 0) {
      log.info("{} changes of an earlier daemon are on their way to the source", waiting);
    }
  }

  @Override
  public String description() {
    return "experimental: changes are kept in the tiers and copied to the source";
  }

  @Override
  public SourceIdentity sourceIdentity() {
    return parts.source().sourceIdentity();
  }

  @Override
  public @Nullable String otherSource() {
    try {
      return parts.source().replacement(LOOK_AT_SOURCE);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return null;
    }
  }

  @Override
  public StatusReport status() {
    return new StatusReport(
        MountReport.of(parts.settings(), isAtMountpoint()),
        DaemonReport.ofThisProcess(),
        new BridgeReport("kernel", parts.bridgeReason(), "page-cache", "files may change"),
        new StateReport(state().toString(), parts.outputs().stateFailure()),
        DatasetReport.NONE,
        new SourceReport(sourceAbsence()),
        KernelReport.of(parts.bridge().latencies(), parts.requests(), null),
        cluster(),
        null,
        OutputsReport.of(parts.outputs().drainStatus()));
  }

  private @Nullable String sourceAbsence() {
    String failure = parts.outputs().sourceFailure();
    return failure == null ? parts.source().absence() : failure;
  }

  @Override
  public @Nullable NodesReport nodes() throws InterruptedException {
    OutputCluster all = parts.cluster();
    StatusReport own = status();
    ClusterReport seen = own.cluster();
    return all == null || seen == null ? null : NodesReport.ask(own, seen, all, ALL_NODES);
  }

  private @Nullable ClusterReport cluster() {
    OutputCluster cluster = parts.cluster();
    return cluster == null ? null : ClusterReport.of(cluster.status());
  }

  private Path state() {
    return parts.directories().state();
  }

  @Override
  public RequestLog requests() {
    return parts.requests();
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
  public void unmount(boolean lazy) throws MountFailure {
    try {
      parts.bridge().unmount(lazy);
    } catch (MountException e) {
      throw DatasetWiring.failure(e);
    }
  }

  @Override
  public boolean hasIdleWorker() {
    return parts.bridge().hasIdleWorker();
  }

  @Override
  public long progress() {
    DrainStatus status = parts.outputs().drainStatus();
    return parts.bridge().answered() + status.drainedBytes() + status.drainedChanges();
  }

  /** Writers without room, and readers of what is only there, wait for the source. */
  @Override
  public boolean waitsForSource() {
    return true;
  }

  @Override
  public boolean isAtMountpoint() {
    return parts.bridge().isAtMountpoint();
  }

  @Override
  public @Nullable String device() {
    return parts.bridge().device();
  }

  @Override
  public boolean hasFailed() {
    return parts.bridge().hasFailed();
  }

  @Override
  public boolean outlivesProcess() {
    return parts.bridge().outlivesProcess();
  }

  @Override
  public boolean handOver() {
    try {
      if (!parts.bridge().freeze(HAND_OVER)) {
        return false;
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
    if (closed.compareAndSet(false, true)) {
      closeParts();
      parts.directories().close();
    }
    return true;
  }

  @Override
  public boolean awaitUnmounted(Duration limit) throws InterruptedException {
    return parts.bridge().awaitEnd(limit);
  }

  @Override
  public void purge() {
    purge = true;
  }

  @Override
  public void close() {
    if (!closed.compareAndSet(false, true)) {
      return;
    }
    endSession();
    boolean isDrained =
        started
            ? closeLast() && drainLast()
            : OutputsReport.of(parts.outputs().drainStatus()).isDrained();
    OutputCluster cluster = parts.cluster();
    if (cluster != null) {
      cluster.sayGoodbye();
    }
    closeParts();
    if (isDrained) {
      forgetAll();
    }
    parts.directories().close();
  }

  private void endSession() {
    if (!started) {
      return;
    }
    try {
      if (!parts.bridge().awaitEnd(Duration.ZERO)) {
        parts.bridge().unmount(true);
        parts.bridge().awaitEnd(LAST_REQUESTS);
      }
    } catch (MountException e) {
      log.warn("{}", e.getMessage());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Returns whether all that was written is in the journal. */
  private boolean closeLast() {
    try {
      parts.outputs().endSession();
      return true;
    } catch (FsException e) {
      log.warn(
          "{}: the last files could not be recorded: {}; the next mount, or pmfs drain --state {},"
              + " brings them to the source",
          parts.settings().mountpoint(),
          Reason.of(e),
          state());
      return false;
    }
  }

  /** Returns whether all is at the source; else prints what is not. */
  private boolean drainLast() {
    boolean isDrained = awaitSource(waits ? LAST_CHANGES : Duration.ZERO);
    OutputsReport left = OutputsReport.of(parts.outputs().drainStatus());
    if (isDrained && left.isDrained()) {
      return true;
    }
    log.warn(
        "{}: {} changes, with {} bytes, are not at the source {}; they stay in {} until the next"
            + " mount or pmfs drain --state brings them there",
        parts.settings().mountpoint(),
        left.waitingChanges(),
        left.dirtyBytes(),
        parts.settings().source().path(),
        state());
    return false;
  }

  /** Also waits in a thread that is interrupted to stop waiting for the end of the session. */
  private boolean awaitSource(Duration limit) {
    long end = System.nanoTime() + limit.toNanos();
    boolean isInterrupted = false;
    try {
      while (true) {
        long left = Math.max(0, end - System.nanoTime());
        try {
          return parts.outputs().drain(left / 1_000_000);
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
    parts.opened().forEach(DatasetWiring::closeQuietly);
  }

  /** Takes the marks away: nothing here is the only copy of anything. */
  private void forgetAll() {
    try {
      parts.directories().clear();
      if (purge) {
        parts.directories().remove();
      }
    } catch (IOException e) {
      log.warn("{}: {}", state(), Reason.of(e));
    }
  }
}
