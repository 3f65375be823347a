package io.pmfs.fuse;

import io.pmfs.metadata.FileName;
import io.pmfs.tier.FsException;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** How requests arrive from the kernel: mounts, serves and unmounts one file system. Used once. */
public interface Bridge {
  /**
   * A name that a daemon may look up in its root to see whether its mount answers: too long for any
   * file, so that nobody asks the source. It is nobody's request and counts nowhere.
   */
  String HEARTBEAT = "x".repeat(300);

  /** What it is called in status, for example {@code jnr}. */
  String name();

  /** What the kernel answers without us, as far as is known by now. */
  ReadMode readMode();

  /** Why it is so, in a few words. */
  String readModeReason();

  /** How long the requests took that came since the start. */
  RequestLatencies latencies();

  /** Has somebody told of every request that is answered. Before {@link #mount}. */
  void tell(RequestListener listener);

  /**
   * Requests that began so long ago and have no answer yet, the longest first. None while {@link
   * #latencies} are switched off, and none ever of a bridge that does not know: the one over
   * libfuse, whose requests are its own threads' calls.
   */
  default List<AskedRequest> waiting(long leastNanos) {
    return List.of();
  }

  /** How many opens since the start were answered with a copy's file, which the kernel reads. */
  default long opensLeftToKernel() {
    return 0;
  }

  /** The sizes of these files together: what the kernel reads if each is read once and whole. */
  default long bytesLeftToKernel() {
    return 0;
  }

  /**
   * Mounts and returns once a request through the mount was answered.
   *
   * @throws MountException if it could not, or not in time; then nothing is left mounted
   */
  void mount(Duration timeout) throws MountException;

  /** Whether the mount stays when this process dies, for another one to go on with. */
  default boolean outlivesProcess() {
    return false;
  }

  /** Whether a request could be taken now. */
  default boolean hasIdleWorker() {
    return true;
  }

  /** How many requests were answered, in whatever way. */
  default long answered() {
    return 0;
  }

  /** Whether the session, which has not ended, needs another process to be served. */
  default boolean hasFailed() {
    return false;
  }

  /**
   * Stops taking requests, for good, when those in progress are answered; the mount stays, and what
   * comes waits for another process. Says whether it did within the time; false also if the session
   * cannot outlive this process.
   */
  default boolean freeze(Duration timeout) throws InterruptedException {
    return false;
  }

  /**
   * Has the kernel forget what it keeps of an inode, attributes and contents, so that it asks
   * again.
   *
   * <p>DEADLOCK: waits for requests in progress; so not from a thread that answers one, and not
   * with a lock held that such a thread may want.
   *
   * @return false if the kernel knew nothing of it, or cannot be told through this bridge: then
   *     what it keeps stays until the time is over for which it was told to
   */
  boolean invalidateInode(long inode) throws FsException;

  /** The same for a name in a directory, and for its absence. */
  boolean invalidateEntry(long directory, FileName name) throws FsException;

  /**
   * Unmounts; the session ends when the kernel lets go of it.
   *
   * @param lazy to detach a mount that is in use: whoever has files open keeps them until the
   *     daemon is gone
   * @throws MountException if it is busy or may not be unmounted; the session goes on
   */
  void unmount(boolean lazy) throws MountException;

  /**
   * Whether the mount point leads to this session: it may be detached, with files open, or lie
   * under another mount.
   */
  default boolean isAtMountpoint() {
    return true;
  }

  /** The number of the session's mount, as mountinfo has it; null if it is not known. */
  default @Nullable String device() {
    return null;
  }

  /**
   * Waits until the session has ended, by whatever unmount, or {@link #hasFailed}; says whether it
   * did within the time.
   */
  boolean awaitEnd(Duration timeout) throws InterruptedException;
}
