package io.pmfs.daemon.dataset;

import io.pmfs.cache.CacheClient;
import io.pmfs.cluster.Cluster;
import io.pmfs.cluster.client.Peers;
import io.pmfs.daemon.control.NodeResource;
import io.pmfs.daemon.metrics.Snapshot;
import io.pmfs.daemon.process.Readiness;
import io.pmfs.daemon.report.BridgeReport;
import io.pmfs.daemon.report.ClusterReport;
import io.pmfs.daemon.report.DaemonReport;
import io.pmfs.daemon.report.DatasetReport;
import io.pmfs.daemon.report.Engagement;
import io.pmfs.daemon.report.KernelReport;
import io.pmfs.daemon.report.MountReport;
import io.pmfs.daemon.report.NodeCacheReport;
import io.pmfs.daemon.report.RecentReads;
import io.pmfs.daemon.report.RecentReport;
import io.pmfs.daemon.report.RecentRequests;
import io.pmfs.daemon.report.SourceReport;
import io.pmfs.daemon.report.StateReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.report.TierReport;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.ReadMode;
import io.pmfs.fuse.Sessions;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.metadata.Namespace;
import io.pmfs.settings.MountSettings;
import io.pmfs.source.CountedBackingStore;
import io.pmfs.stage.ReadOrigins;
import io.pmfs.stage.Stager;
import io.pmfs.stage.StagerStatus;
import io.pmfs.stage.copies.Copies;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A dataset with its tiers, namespace and bridge, assembled by {@link DatasetWiring}. */
final class ServedDataset extends ServedMount {
  private static final Logger log = LoggerFactory.getLogger(ServedDataset.class);

  static final String LACKS_CAPABILITY =
      "no passthrough: it needs CAP_SYS_ADMIN, which the user's daemon has only with"
          + " --passthrough-capability";

  /**
   * How long a task of an earlier daemon waits for the cluster, which determines this node's part.
   */
  private static final Duration OWN_PART = Duration.ofSeconds(10);

  private static final Duration LAST_REQUESTS = Duration.ofSeconds(10);

  private final MountSettings settings;
  private final Path state;
  private final Namespace namespace;
  private final DatasetSource source;
  private final CountedBackingStore asked;
  private final @Nullable Cluster cluster;
  private final MountTiers tiers;
  private final Copies copies;
  private final Stager stager;
  private final PmfsFileSystem fileSystem;
  private final KeptTasks tasks;
  private final Sessions bridge;
  private final Opened opened;
  private final RecentRequests recentRequests = new RecentRequests(this::sourceOperations);
  private final RecentReads recentReads = new RecentReads(this::counts, recentRequests);

  ServedDataset(
      KernelSession session,
      SourceAndState source,
      MountTiers tiers,
      Stager stager,
      PmfsFileSystem fileSystem,
      KeptTasks tasks,
      Opened opened) {
    super(session, source.origin(), LAST_REQUESTS);
    this.settings = session.settings();
    this.state = source.state();
    this.namespace = source.namespace();
    this.source = source.origin();
    this.asked = source.store();
    this.cluster = source.cluster();
    this.tiers = tiers;
    this.copies = tiers.copies();
    this.stager = stager;
    this.fileSystem = fileSystem;
    this.tasks = tasks;
    this.bridge = session.bridge();
    this.opened = opened;
  }

  @Override
  protected void serve() throws MountFailure {
    Readiness readiness = new Readiness(settings.bridge().readyTimeout());
    // A resumed mount does not wait for peers; a new one finds them first.
    if (!session.isResumed()) {
      joinCluster(readiness.left());
    }
    mount(readiness.leftForMount());
    if (session.isResumed()) {
      // A task needs this node's share first; readers are served meanwhile.
      joinCluster(tasks.goesOn() ? OWN_PART : Duration.ZERO);
    }
    tasks.resume();
    recentReads.start();
  }

  private void joinCluster(Duration patience) throws MountFailure {
    Cluster joined = cluster;
    if (joined == null) {
      return;
    }
    NodeResource answers = new NodeResource(this::status, tasks);
    try {
      joined.open(fileSystem, namespace, copies, stager, answers, patience);
    } catch (IllegalArgumentException e) {
      stayAlone(new MountFailure(ExitStatus.USAGE, "--cluster: " + e.getMessage(), e));
    } catch (IOException e) {
      stayAlone(
          new MountFailure(ExitStatus.FAILED, "--cluster: cannot serve peers: " + Reason.of(e), e));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** A resumed mount continues without peers; a new one fails. */
  private void stayAlone(MountFailure failure) throws MountFailure {
    if (!session.isResumed()) {
      throw failure;
    }
    log.warn("{}; continuing without peers", failure.line());
  }

  @Override
  public String description() {
    return source.description();
  }

  @Override
  public StatusReport status() {
    ReadOrigins origins = stager.readOrigins();
    List<TierReport> tierReports =
        IntStream.range(0, copies.tiers().size())
            .mapToObj(i -> TierReport.of(i, origins, copies, stager))
            .toList();
    DatasetReport.Reads reads =
        DatasetReport.Reads.of(fileSystem.readStatistics(), origins, bridge.opensLeftToKernel());
    DatasetReport.Staging staging = DatasetReport.Staging.of(stager.status(), copies);
    RecentReads.Counts recent = recentReads.counts();
    DatasetReport dataset =
        new DatasetReport(
            tierReports,
            reads,
            staging,
            Engagement.of(tierReports, reads, staging, recent),
            RecentReport.of(
                tierReports,
                recent.origins(),
                recentRequests.lastMinute(),
                source.files().sinceLastRequest()),
            NodeCacheReport.of(source.cache()));
    return new StatusReport(
        MountReport.of(settings, bridge.isAtMountpoint()),
        DaemonReport.ofThisProcess(),
        new BridgeReport(
            bridge.name(), session.bridgeReason(), bridge.readMode().word(), readModeReason()),
        new StateReport(state.toString(), namespace.failure()),
        dataset,
        new SourceReport(
            SourceReport.Operations.of(source.files().operations()),
            source.absence(),
            namespace.renumbered()),
        KernelReport.of(bridge.latencies(), requests(), KernelReport.Failures.of(requests())),
        cluster == null ? null : ClusterReport.of(cluster.status()),
        tasks.latest(),
        null);
  }

  private long sourceOperations() {
    return source.files().operations().total();
  }

  /** Each open of a file that the kernel reads itself counts as one read of the whole file. */
  private RecentReads.Counts counts() {
    StagerStatus staging = stager.status();
    long asked = Math.min(stager.bytesAskedForReaders(), source.files().operations().bytes());
    return new RecentReads.Counts(
        stager.bytesServed() + bridge.bytesLeftToKernel() + bridge.sourceBytesLeftToKernel(),
        asked + stager.bytesOnlyLent(),
        staging.completed(),
        staging.copiedAgain(),
        staging.evicted(),
        origins());
  }

  private RecentReads.Origins origins() {
    ReadOrigins readers = stager.readOrigins();
    return new RecentReads.Origins(
        readers.tiers().stream().map(ReadOrigins.Origin::bytes).toList(),
        bridge.bytesLeftToKernel(),
        bridge.sourceBytesLeftToKernel(),
        readers.fetched().bytes(),
        readers.source().bytes(),
        (cluster == null ? 0 : cluster.status().bytesFromPeers())
            + bytesFromCache()
            + source.borrowedBytes(),
        source.files().operations().bytes());
  }

  private long bytesFromCache() {
    CacheClient.Statistics cache = source.cache();
    return cache == null ? 0 : cache.copyBytes();
  }

  @Override
  public Snapshot snapshot() {
    ReadOrigins origins = stager.readOrigins();
    return new Snapshot(
        status(), origins.fetched().reads(), origins.source().reads(), source.files().errors());
  }

  @Override
  protected @Nullable Peers peers() {
    return cluster;
  }

  @Override
  public KeptTasks tasks() {
    return tasks;
  }

  private String readModeReason() {
    String reason = bridge.readModeReason();
    if (!reason.isEmpty()) {
      return reason;
    }
    if (bridge.readMode() == ReadMode.PASSTHROUGH && tiers.isDirect()) {
      return tiers.first() + " is mapped memory, which the kernel reads itself";
    }
    boolean leftToPageCache =
        !settings.bridge().readMode().equals(ReadMode.PAGE_CACHE.word())
            && bridge.readMode() == ReadMode.PAGE_CACHE;
    if (leftToPageCache
        && settings.bridge().user() != null
        && !settings.bridge().passthroughCapability()) {
      return LACKS_CAPABILITY;
    }
    if (leftToPageCache && settings.bridge().readMode().equals(ReadMode.PASSTHROUGH.word())) {
      return "no passthrough, as an earlier daemon of this session found";
    }
    return settings.bridge().readMode().equals("auto")
        ? "as an earlier daemon of this session chose"
        : "as requested";
  }

  @Override
  public long progress() {
    return bridge.answered() + asked.begun() + asked.ended();
  }

  @Override
  public boolean waitsForSource() {
    long ended = asked.ended();
    return asked.begun() > ended;
  }

  @Override
  protected void suspend() {
    tasks.handOver();
    closeParts();
  }

  @Override
  protected boolean finish(boolean wasStarted) {
    if (cluster != null) {
      cluster.sayGoodbye();
    }
    if (TransientCopies.areIn(state)) {
      purge();
    }
    closeParts();
    return dropIfWanted(settings.copies().tiers(), state);
  }

  private void closeParts() {
    // First leave the cluster, so that peers need no timeout; then stop making copies, so that the
    // tiers' usage is final; then the rest.
    if (cluster != null) {
      cluster.close();
    }
    tasks.close();
    recentReads.close();
    stager.close();
    for (int i = 0; i < copies.tiers().size(); i++) {
      TierUsage.keep(namespace, copies.tiers().get(i), copies.formats().get(i));
    }
    opened.close();
  }
}
