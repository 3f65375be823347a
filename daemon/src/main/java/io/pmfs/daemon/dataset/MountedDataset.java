package io.pmfs.daemon.dataset;

import io.pmfs.daemon.control.ControlRequests;
import io.pmfs.daemon.metrics.Snapshot;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.daemon.tasks.Drains;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.fuse.ReadMode;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.metadata.FileName;
import io.pmfs.places.SourceIdentity;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A running mount as the daemon uses it. */
public interface MountedDataset extends AutoCloseable {
  /** Mounts and serves; returns once a probe through the mount was answered. */
  void start() throws MountFailure;

  /** What the mount shows instead of the source's own files; empty if it shows those. */
  default String description() {
    return "";
  }

  /** The identity of the source, for later daemons of the session; null if none can resume it. */
  default @Nullable SourceIdentity sourceIdentity() {
    return null;
  }

  /**
   * Why another process could not continue: another source is at the source's path. Null if it
   * could, even while the source is away. Waits a few seconds at most.
   */
  default @Nullable String otherSource() {
    return null;
  }

  /** A snapshot. Several threads may call it, also while unmounting. */
  StatusReport status();

  /**
   * The status of all nodes; null without a cluster. Waits for the other nodes, some seconds at
   * most.
   */
  default @Nullable NodesReport nodes() throws InterruptedException {
    return null;
  }

  /** The answer of {@link ControlRequests#curl}; null without a cluster. */
  default @Nullable String curl(
      @Nullable String node, String resource, FileName path, @Nullable String range) {
    return null;
  }

  /** The status and further metrics. Threads may call it as they call {@link #status}. */
  default Snapshot snapshot() {
    return new Snapshot(status(), 0, 0, 0);
  }

  /** What commands wait for in a writable mount; null if the mount can only be read. */
  default @Nullable Drains drains() {
    return null;
  }

  /**
   * Whether {@link #close} waits a while for the source of a writable mount; it does by default.
   * What is left stays for the next mount.
   */
  default void waitForSource(boolean waits) {}

  /** The log of single requests; null if there is none. */
  default @Nullable RequestLog requests() {
    return null;
  }

  /** The tasks that stage, verify and evict on request. */
  KeptTasks tasks();

  /**
   * Unmounts; does nothing if there is no mount (yet, or any more). A busy mount gives a {@link
   * MountFailure#BUSY} failure, and the session continues. After a lazy unmount it continues until
   * the last file is closed.
   */
  void unmount(boolean lazy) throws MountFailure;

  /** Whether a worker is free for the next request. */
  default boolean hasIdleWorker() {
    return true;
  }

  /** A counter of progress: requests answered, and requests to the source and peers. */
  default long progress() {
    return 0;
  }

  /** Whether a request to the source or a peer is outstanding. */
  default boolean waitsForSource() {
    return false;
  }

  /**
   * Whether the mount point leads to this mount: it may be detached with files open, or hidden by
   * another mount.
   */
  default boolean isAtMountpoint() {
    return true;
  }

  /** The device number of the mount in mountinfo; null if unknown. */
  default @Nullable String device() {
    return null;
  }

  /**
   * The device numbers of all its mounts that have not ended. A user's daemon has one for each
   * mount point.
   */
  default List<String> devices() {
    String only = device();
    return only == null ? List.of() : List.of(only);
  }

  /**
   * Mounts the dataset at a further mount point, for a user who cannot bind the first one. Returns
   * the device number; null if unknown.
   *
   * @throws MountFailure with {@link ExitStatus#CANNOT} if this daemon cannot do that at all, and
   *     {@link ExitStatus#IN_USE} if it has too many mount points
   */
  default @Nullable String join(Path mountpoint, Duration timeout) throws MountFailure {
    throw new MountFailure(ExitStatus.CANNOT, "this daemon serves no further mount point");
  }

  /** Whether this process can no longer serve, and the mount remains for another one. */
  default boolean hasFailed() {
    return false;
  }

  /** What the kernel may answer without pmfs. */
  default ReadMode readMode() {
    return ReadMode.PAGE_CACHE;
  }

  /** Whether the mount remains for another process if this one dies. */
  default boolean outlivesProcess() {
    return false;
  }

  /**
   * Stops cleanly without unmounting, so that another process can continue the session. False if it
   * cannot; then nothing has changed.
   */
  default boolean handOver() {
    return false;
  }

  /**
   * Waits until {@link #unmount} or another process has unmounted it, or {@link #hasFailed}. False
   * after the limit.
   */
  boolean awaitUnmounted(Duration limit) throws InterruptedException;

  /** Makes {@link #close} drop all copies and state of this dataset. */
  void purge();

  /**
   * Stops cleanly: unmounts if need be, ends staging, closes tiers and namespace. Idempotent; any
   * thread may call it, also before or during {@link #start}.
   */
  @Override
  void close();
}
