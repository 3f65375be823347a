package io.pmfs.daemon.dataset;

import io.pmfs.daemon.metrics.Snapshot;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.SampleReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.daemon.requests.SlowRequests;
import io.pmfs.daemon.tasks.FakeTasks;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.fuse.ReadMode;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.places.SourceIdentity;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.TestMachine;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** A dataset whose mount is only an entry in a test's mountinfo. */
public final class FakeDataset implements MountedDataset {
  private final MountSettings settings;
  private final TestMachine world;
  private final CountDownLatch unmounted = new CountDownLatch(1);
  public final CountDownLatch closed = new CountDownLatch(1);
  final FakeTasks fakeTasks = new FakeTasks();
  final KeptTasks tasks = new KeptTasks(fakeTasks, null);
  private final RequestLog requests =
      new RequestLog(
          inode -> null,
          leastNanos -> List.of(),
          null,
          new SlowRequests(Duration.ZERO, InstantSource.system(), line -> {}),
          InstantSource.system());
  public volatile boolean busy;
  public volatile boolean lazily;
  public volatile boolean purged;

  /** Whether a file stays open forever after an unmount. */
  public volatile boolean heldOpen;

  /** The values that a heartbeat reads. */
  public volatile boolean isIdle = true;

  public volatile long progress;
  public volatile boolean isSourceSilent;
  public volatile boolean isRootLocked;
  public volatile boolean isDetached;

  /** Whether a supervisor holds its mount. */
  public volatile boolean isHeld;

  public @Nullable volatile MountFailure startFailure;

  /** A failing thread, as in the status. */
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
    StatusReport report =
        SampleReport.with(
            SampleReport.of(settings.mountpoint().toString(), settings.source().path().toString()),
            Map.of("pid", ProcessHandle.current().pid()));
    String failure = threadFailure;
    return failure == null ? report : SampleReport.with(report, Map.of("threadFailure", failure));
  }

  @Override
  public @Nullable NodesReport nodes() {
    return nodes;
  }

  @Override
  public String description() {
    return "";
  }

  @Override
  public SourceIdentity sourceIdentity() {
    return new SourceIdentity(SourceIdentity.Form.DIRECTORY, "fake", null);
  }

  @Override
  public @Nullable String otherSource() {
    return null;
  }

  @Override
  public Snapshot snapshot() {
    return new Snapshot(status(), 0, 0, 0);
  }

  @Override
  public RequestLog requests() {
    return requests;
  }

  @Override
  public @Nullable String join(Path mountpoint, Duration timeout) throws MountFailure {
    throw new MountFailure(ExitStatus.CANNOT, "no further mount point");
  }

  @Override
  public @Nullable String device() {
    return null;
  }

  @Override
  public List<String> devices() {
    return List.of();
  }

  @Override
  public boolean hasFailed() {
    return false;
  }

  @Override
  public ReadMode readMode() {
    return ReadMode.PAGE_CACHE;
  }

  @Override
  public boolean handOver() {
    return false;
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
  public boolean locksRoot() {
    return isRootLocked;
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
  public boolean isSaved() {
    return true;
  }

  @Override
  public void close() {
    if (!heldOpen) {
      unmounted.countDown();
    }
    closed.countDown();
  }
}
