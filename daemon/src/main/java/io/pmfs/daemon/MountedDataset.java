package io.pmfs.daemon;

import io.pmfs.daemon.metrics.Snapshot;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.fuse.ReadMode;
import io.pmfs.metadata.FileName;
import io.pmfs.settings.MountFailure;
import io.pmfs.settings.SourceIdentity;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/** A running mount, made by {@link Wiring}: everything the daemon may ask of it. */
public interface MountedDataset extends AutoCloseable {
  /** Mounts and serves; returns once a probe through the mount answered. */
  void start() throws MountFailure;

  /** What the mount shows if that is not the files of the source; else empty. */
  default String description() {
    return "";
  }

  /** Which source is served, for later daemons of the session; null if none can go on with it. */
  default @Nullable SourceIdentity sourceIdentity() {
    return null;
  }

  /**
   * Why another process could not go on with this source, because another one is at its path; null
   * if it could, also without the source. Waits for a few seconds at most.
   */
  default @Nullable String otherSource() {
    return null;
  }

  /** A snapshot; may be asked by several threads, and while unmounting. */
  StatusReport status();

  /**
   * The status of all nodes of the cluster; null if there is none. Waits for the others, some
   * seconds at most.
   */
  default @Nullable NodesReport nodes() throws InterruptedException {
    return null;
  }

  /** What {@link ControlRequests#curl} gives; null if there is no cluster. */
  default @Nullable String curl(
      @Nullable String node, String resource, FileName path, @Nullable String range) {
    return null;
  }

  /** The status, and what is measured besides; may be asked as {@link #status} may. */
  default Snapshot snapshot() {
    return new Snapshot(status(), 0, 0, 0);
  }

  /** What can be told of single requests; null if nothing can. */
  default @Nullable RequestLog requests() {
    return null;
  }

  /** What is staged, verified and evicted on request. */
  KeptTasks tasks();

  /**
   * Unmounts; does nothing when there is no mount (yet, or any more). A busy mount gives a {@link
   * MountFailure#BUSY} failure, and the session goes on. After a lazy unmount it also goes on,
   * until the last file is closed.
   */
  void unmount(boolean lazy) throws MountFailure;

  /** Whether requests that come now could be taken. */
  default boolean hasIdleWorker() {
    return true;
  }

  /** Counts what gets on: requests answered, and what the source and peers are asked for. */
  default long progress() {
    return 0;
  }

  /** Whether the source or a peer owes an answer. */
  default boolean waitsForSource() {
    return false;
  }

  /**
   * Whether the mount point leads there: the mount may be detached, with files open, or lie under
   * another.
   */
  default boolean isAtMountpoint() {
    return true;
  }

  /** The number of the mount, as mountinfo has it; null if it is not known. */
  default @Nullable String device() {
    return null;
  }

  /** Whether this process can serve no more, and the mount is there for another. */
  default boolean hasFailed() {
    return false;
  }

  /** What the kernel may answer alone. */
  default ReadMode readMode() {
    return ReadMode.PAGE_CACHE;
  }

  /** Whether the mount stays when this process dies, for another one to go on with. */
  default boolean outlivesProcess() {
    return false;
  }

  /**
   * Stops cleanly without unmounting, for another process to go on with the session; false if it
   * cannot, and then nothing has changed.
   */
  default boolean handOver() {
    return false;
  }

  /**
   * Waits until the mount is gone, by {@link #unmount} or because another process unmounted it, or
   * {@link #hasFailed}; says whether it did within the time.
   */
  boolean awaitUnmounted(Duration limit) throws InterruptedException;

  /** Asks that {@link #close} drops all copies and state of this dataset. */
  void purge();

  /**
   * Stops cleanly: unmounts if need be, ends staging, closes tiers and namespace. Idempotent; any
   * thread may call it, also before or during {@link #start}.
   */
  @Override
  void close();
}
