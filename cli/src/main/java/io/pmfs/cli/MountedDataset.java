package io.pmfs.cli;

/** A running mount, made by {@link Wiring}: everything the daemon may ask of it. */
interface MountedDataset extends AutoCloseable {
  /** Mounts and serves; returns once a probe through the mount answered. */
  void start() throws MountFailure;

  /** A snapshot; may be asked by several threads, and while unmounting. */
  StatusReport status();

  /**
   * Unmounts; does nothing when there is no mount (yet, or any more). A busy mount gives a {@link
   * MountFailure#BUSY} failure, and the session goes on. After a lazy unmount it also goes on,
   * until the last file is closed.
   */
  void unmount(boolean lazy) throws MountFailure;

  /** Waits until the mount is gone, by {@link #unmount} or because somebody else unmounted it. */
  void awaitUnmounted() throws InterruptedException;

  /** Asks that {@link #close} drops all copies and state of this dataset. */
  void purge();

  /**
   * Stops cleanly: unmounts if need be, ends staging, closes tiers and namespace. Idempotent; any
   * thread may call it, also before or during {@link #start}.
   */
  @Override
  void close();
}
