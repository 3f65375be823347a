package io.pmfs.daemon.dataset;

import io.pmfs.fuse.ReadMode;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** A mount as its daemon sees it: mounted, watched, handed over or unmounted, and closed. */
public interface MountLife extends AutoCloseable {
  /** Mounts and serves; returns once a probe through the mount was answered. */
  void start() throws MountFailure;

  /**
   * Mounts the dataset at a further mount point, for a user who cannot make a bind mount. Returns
   * the device number; null if unknown.
   *
   * @throws MountFailure with {@link ExitStatus#CANNOT} if this daemon supports only one mount
   *     point, {@link ExitStatus#IN_USE} if it has too many
   */
  @Nullable String join(Path mountpoint, Duration timeout) throws MountFailure;

  /**
   * Unmounts; does nothing if nothing is mounted. Fails with {@link MountFailure#BUSY} if the mount
   * is busy; the session then continues. After a lazy unmount the session continues until the last
   * file is closed.
   */
  void unmount(boolean lazy) throws MountFailure;

  /** Whether a worker is free for the next request. */
  boolean hasIdleWorker();

  /** A counter of progress: requests answered, and requests to the source and peers. */
  long progress();

  /** Whether a request to the source or a peer is outstanding. */
  boolean waitsForSource();

  /**
   * Whether a request that changes names of the root may be waiting: the kernel then holds back all
   * others there.
   */
  boolean locksRoot();

  /**
   * Whether the mount point leads to this mount: it may be detached with files open, or hidden by
   * another mount.
   */
  boolean isAtMountpoint();

  /** The device number of the mount in mountinfo; null if unknown. */
  @Nullable String device();

  /** The device numbers of all its live mounts. A user's daemon has one for each mount point. */
  List<String> devices();

  /** Whether this process can no longer serve, so that another one must continue the mount. */
  boolean hasFailed();

  ReadMode readMode();

  /** Whether the mount remains for another process if this one dies. */
  boolean outlivesProcess();

  /**
   * Stops cleanly without unmounting, so that another process can continue the session. Returns
   * false, without any change, if that is impossible.
   */
  boolean handOver();

  /** Waits until the mount is unmounted or {@link #hasFailed}. Returns false after the limit. */
  boolean awaitUnmounted(Duration limit) throws InterruptedException;

  /** Makes {@link #close} drop all copies and state of this dataset. */
  void purge();

  /** Whether it was closed and has left no changes that the source lacks, and all was purged. */
  boolean isSaved();

  /**
   * Stops cleanly: unmounts if need be, ends staging, closes tiers and namespace. Idempotent; any
   * thread may call it, also before or during {@link #start}.
   */
  @Override
  void close();
}
