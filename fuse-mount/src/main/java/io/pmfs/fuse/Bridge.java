package io.pmfs.fuse;

import io.pmfs.fuse.mounting.MountException;
import io.pmfs.fuse.protocol.AskedRequest;
import io.pmfs.fuse.protocol.RequestLatencies;
import io.pmfs.fuse.protocol.RequestListener;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Mounts, serves and unmounts one file system. Used once. */
public interface Bridge {
  /**
   * An extended attribute that no file has. Requests for it reach the daemon but not the source, so
   * that checking whether a mount answers costs no request to the source.
   */
  String PROBE = "user.pmfs.probe";

  /**
   * The name that a daemon looks up in its root to check whether its mount answers. It is too long
   * for any file, so the source is not asked. Not counted in statistics.
   */
  String HEARTBEAT = "x".repeat(300);

  /** The bridge's name in status, for example {@code jnr}. */
  String name();

  /** What the kernel may answer without the daemon, as far as known. */
  ReadMode readMode();

  /** Why that mode is in effect, in a few words. */
  String readModeReason();

  /** How long the requests since the start took. */
  RequestLatencies latencies();

  /** Calls the listener for every answered request. Call before {@link #mount}. */
  void listen(RequestListener listener);

  /**
   * Requests that began at least {@code leastNanos} ago and are not answered yet, oldest first.
   * Empty while {@link #latencies} are off, and for the bridge over libfuse, which does not see
   * single requests.
   */
  default List<AskedRequest> waiting(long leastNanos) {
    return List.of();
  }

  /** How many opens since the start were answered with a file for the kernel to read. */
  default long opensLeftToKernel() {
    return 0;
  }

  /**
   * The total size of those files that are copies: what the kernel reads if it reads each one once
   * and completely.
   */
  default long bytesLeftToKernel() {
    return 0;
  }

  /** The total size of those files that are the source's own. */
  default long sourceBytesLeftToKernel() {
    return 0;
  }

  /**
   * Mounts; returns once a request through the mount was answered.
   *
   * @throws MountException if mounting failed or timed out; then nothing is left mounted
   */
  void mount(Duration timeout) throws MountException;

  /** Whether the mount survives this process, so that another process can continue with it. */
  default boolean outlivesProcess() {
    return false;
  }

  /** Whether a worker is free to take a request. */
  default boolean hasIdleWorker() {
    return true;
  }

  /**
   * Whether a request for a name in the root has waited for a second, in which the kernel may let
   * no other request have those names.
   */
  default boolean waitsInRoot() {
    return false;
  }

  /** How many requests were answered, with success or failure. */
  default long answered() {
    return 0;
  }

  /** Whether the session continues but this process can no longer serve it. */
  default boolean hasFailed() {
    return false;
  }

  /**
   * Permanently stops taking requests and waits until those in progress are answered. The mount
   * stays, and new requests wait for another process. Returns whether this completed in time; false
   * also if the session cannot outlive this process.
   */
  default boolean freeze(Duration timeout) throws InterruptedException {
    return false;
  }

  /**
   * Unmounts. The session ends when the kernel releases it.
   *
   * @param lazy detaches a mount that is in use: open files stay readable until the daemon ends
   * @throws MountException if the mount is busy or unmounting is not permitted; the session
   *     continues
   */
  void unmount(boolean lazy) throws MountException;

  /**
   * Whether the mount point leads to this session. It does not if the mount is detached with files
   * open, or lies under another mount.
   */
  default boolean isAtMountpoint() {
    return true;
  }

  /** The device number of the session's mount, as in mountinfo; null if not known. */
  default @Nullable String device() {
    return null;
  }

  /**
   * Waits until the session has ended, for any reason, or {@link #hasFailed}; returns whether that
   * happened in time.
   */
  boolean awaitEnd(Duration timeout) throws InterruptedException;
}
