package io.pmfs.daemon.dataset;

import io.pmfs.daemon.report.ClusterReport;
import io.pmfs.daemon.report.Engagement;
import io.pmfs.daemon.report.MissingNode;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.OutputsReport;
import io.pmfs.daemon.report.RecentReport;
import io.pmfs.daemon.report.RequestReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.report.TierReport;
import io.pmfs.daemon.tasks.FakeTasks;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.TestMachine;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** A dataset whose mount is only an entry in a test's mountinfo. */
public final class FakeDataset implements MountedDataset {
  private final MountSettings settings;
  private final TestMachine world;
  private final CountDownLatch unmounted = new CountDownLatch(1);
  public final CountDownLatch closed = new CountDownLatch(1);
  final FakeTasks fakeTasks = new FakeTasks();
  final KeptTasks tasks = new KeptTasks(fakeTasks, null);
  public volatile boolean busy;
  public volatile boolean lazily;
  public volatile boolean purged;

  /** Whether an unmount leaves a file open forever. */
  public volatile boolean heldOpen;

  /** The values that a heartbeat reads. */
  public volatile boolean isIdle = true;

  public volatile long progress;
  public volatile boolean isSourceSilent;
  public volatile boolean isDetached;

  /** Whether a supervisor holds its mount. */
  public volatile boolean isHeld;

  public @Nullable volatile MountFailure startFailure;

  /** A thread that fails, as in the status. */
  public @Nullable volatile String threadFailure;

  /** The reports of all nodes of its cluster; null without a cluster. */
  public @Nullable volatile NodesReport nodes;

  public FakeDataset(MountSettings settings, TestMachine world) {
    this.settings = settings;
    this.world = world;
  }

  @Override
  public void start() throws MountFailure {
    MountFailure failure = startFailure;
    if (failure != null) {
      throw failure;
    }
    world.mountinfo(
        TestMachine.line(settings.mountpoint(), "fuse.pmfs", settings.source().path().toString()));
  }

  @Override
  public StatusReport status() {
    return report(
        settings.mountpoint().toString(), settings.source().path().toString(), null, threadFailure);
  }

  @Override
  public @Nullable NodesReport nodes() {
    return nodes;
  }

  /** A report with failed requests and numbers that changed. */
  public static StatusReport failing(StatusReport.Failures failures, long renumbered) {
    StatusReport of = report("/mnt/dataset", "/lustre/imagenet");
    return new StatusReport(
        of.mountpoint(),
        of.source(),
        of.user(),
        of.pid(),
        of.uptimeSeconds(),
        of.bridge(),
        of.bridgeReason(),
        of.readMode(),
        of.readModeReason(),
        of.logFile(),
        of.stateDirectory(),
        of.stateFailure(),
        of.tiers(),
        of.reads(),
        of.staging(),
        of.sourceOperations(),
        of.cluster(),
        of.task(),
        of.metrics(),
        of.engagement(),
        of.requests(),
        of.memory(),
        of.accessLog(),
        of.waiting(),
        of.sourceAbsence(),
        of.threadFailure(),
        of.recent(),
        of.detached(),
        of.outputs(),
        of.holders(),
        of.keptSeconds(),
        of.nodeCache(),
        failures,
        renumbered);
  }

  /** The same for a node in a cluster of two, n1 and n2. */
  public static StatusReport inCluster(String node) {
    return inCluster(node, List.of());
  }

  /** The same with more members. */
  public static StatusReport inCluster(String node, List<ClusterReport.MemberReport> more) {
    return report("/mnt/dataset", "/lustre/imagenet", cluster(node, more, List.of()), null);
  }

  /** The same cluster, of which more nodes are missing. */
  public static StatusReport withMissing(List<MissingNode> missing) {
    return report("/mnt/dataset", "/lustre/imagenet", cluster("n1", List.of(), missing), null);
  }

  /** A writable mount in the cluster, of which more nodes are missing. */
  public static StatusReport writable(OutputsReport outputs, List<MissingNode> missing) {
    return StatusReport.ofOutputs(
        new StatusReport.Outputs(
            "/mnt/run42",
            "/lustre/run42",
            "",
            "/local/pmfs/state",
            null,
            new RequestReport(List.of(), List.of()),
            null,
            new StatusReport.Waiting(0, 0, null, null, -1),
            null,
            cluster("n1", List.of(), missing),
            true),
        outputs);
  }

  private static ClusterReport cluster(
      String node, List<ClusterReport.MemberReport> more, List<MissingNode> missing) {
    return new ClusterReport(
        "train",
        Stream.concat(
                more.stream(),
                Stream.of("n1", "n2")
                    .map(
                        name ->
                            new ClusterReport.MemberReport(
                                name,
                                "00000000-0000-0000-0000-000000000001",
                                "10.0.0." + name.substring(1),
                                20113,
                                name.equals(node),
                                name.equals("n1") ? 0.49 : 0.51,
                                name.equals("n2") && node.equals("n1"),
                                100,
                                5 << 20,
                                3,
                                0.4,
                                12.5)))
            .toList(),
        node.equals("n1") ? 0.49 : 0.51,
        1,
        "auto",
        7 << 20,
        90,
        10,
        0.9,
        new ClusterReport.Served(
            80, 3 << 20, new TreeMap<>(Map.of("421", 2L, "slow", 1L)), 4, 5, 6),
        2 + more.size() + missing.size(),
        missing,
        null);
  }

  public static StatusReport report(String mountpoint, String source) {
    return report(mountpoint, source, null, null);
  }

  private static StatusReport report(
      String mountpoint,
      String source,
      @Nullable ClusterReport cluster,
      @Nullable String threadFailure) {
    return new StatusReport(
        mountpoint,
        source,
        "ada",
        1,
        3725,
        "jnr",
        "as asked for",
        "page-cache",
        "read-only",
        "/var/log/pmfs/x.log",
        "/local/pmfs/state",
        null,
        List.of(
            new TierReport(
                "pm0",
                "pm",
                "/mnt/pmem0/pmfs",
                "full",
                "quota",
                new TierReport.Dax(false, "not DAX: ext4 on /dev/pmem0 mounted without dax"),
                200L << 30,
                200L << 30,
                1234567,
                "zstd:3",
                500L << 30,
                600,
                400,
                3000,
                8,
                1,
                7,
                0),
            new TierReport(
                "ssd0",
                "ssd",
                "/local/pmfs",
                "on",
                "",
                TierReport.Dax.NONE,
                1L << 40,
                1536,
                1,
                "none",
                1000,
                0,
                400,
                0,
                0,
                0,
                0,
                72L << 30)),
        new StatusReport.Reads(1000, 4000, 3000, 500, 0.75, 0, 500, 0),
        new StatusReport.Staging(1, 2, 3, 4, 1, 5, 6, 7, 8, 9, false),
        new StatusReport.SourceOperations(1, 2, 1 << 20, 4, 5, 6, 7, 8, 9, 42),
        cluster,
        null,
        null,
        new Engagement(Engagement.ENGAGED, "the source was asked for 12 % of what was read"),
        new RequestReport(
            List.of(0.001, 0.002),
            List.of(
                new RequestReport.Operation("lookup", 2, 0.001, 0.5, 1, List.of(2L, 0L, 0L)),
                new RequestReport.Operation("read", 10, 0.02, 1.5, 2, List.of(0L, 10L, 0L)))),
        new StatusReport.Memory(200 << 20, 50 << 20, 192 << 20),
        new StatusReport.AccessLog("/var/log/pmfs/x.access", 1234),
        new StatusReport.Waiting(3, 12.9, "read", "part-000/x", 4711),
        null,
        threadFailure,
        new RecentReport(
            4000,
            List.of(new RecentReport.TierBytes("pm", 3000), new RecentReport.TierBytes("ssd", 1)),
            0,
            500,
            cluster == null ? 0 : 300,
            cluster == null ? 499 : 199,
            42,
            12L),
        null,
        null,
        null,
        null,
        null,
        new StatusReport.Failures(0, 0, null, null, null, null),
        0L);
  }

  @Override
  public KeptTasks tasks() {
    return tasks;
  }

  @Override
  public void unmount(boolean lazy) throws MountFailure {
    if (busy && !lazy) {
      throw new MountFailure(ExitStatus.FAILED, MountFailure.BUSY);
    }
    lazily = lazy;
    world.mountinfo();
    if (!heldOpen) {
      unmounted.countDown();
    }
  }

  @Override
  public boolean hasIdleWorker() {
    return isIdle;
  }

  @Override
  public long progress() {
    return progress;
  }

  @Override
  public boolean waitsForSource() {
    return isSourceSilent;
  }

  @Override
  public boolean outlivesProcess() {
    return isHeld;
  }

  @Override
  public boolean isAtMountpoint() {
    return !isDetached;
  }

  /** An unmount by another process, with umount(8). */
  public void unmountedByOthers() {
    world.mountinfo();
    unmounted.countDown();
  }

  @Override
  public boolean awaitUnmounted(Duration limit) throws InterruptedException {
    return unmounted.await(limit.toMillis(), TimeUnit.MILLISECONDS);
  }

  @Override
  public void purge() {
    purged = true;
  }

  @Override
  public void close() {
    if (!heldOpen) {
      unmounted.countDown();
    }
    closed.countDown();
  }
}
