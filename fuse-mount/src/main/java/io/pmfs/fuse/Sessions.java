package io.pmfs.fuse;

import io.pmfs.fuse.mounting.MountException;
import io.pmfs.fuse.mounting.MountException.Reason;
import io.pmfs.fuse.protocol.AnswerBuffers;
import io.pmfs.fuse.protocol.AskedRequest;
import io.pmfs.fuse.protocol.RequestLatencies;
import io.pmfs.fuse.protocol.RequestListener;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * All sessions of one file system, as one bridge: the first, and one for each further mount point
 * of a user, who cannot bind the first. Sessions end separately; this bridge ends with the last.
 * Thread-safe.
 */
public final class Sessions implements Bridge {
  private static final Logger log = LoggerFactory.getLogger(Sessions.class);

  /** Each further session has as much direct memory as its workers: 9 MiB. */
  public static final int MOST = 8;

  /** The largest read of a further session: at least the read-ahead of users' mounts. */
  static final int FURTHER_READ_BYTES = 128 << 10;

  private final Bridge first;
  private final AnswerBuffers memory = new AnswerBuffers(FURTHER_READ_BYTES);
  private final List<KernelBridge> further = new ArrayList<>(); // GUARDED_BY(this)
  private boolean isOver; // GUARDED_BY(this)

  /** The first session is not mounted yet. */
  public Sessions(Bridge first) {
    this.first = first;
  }

  /**
   * Mounts the file system at another mount point; returns the device number once the mount
   * answers. *
   *
   * @throws MountException UNAVAILABLE if these sessions cannot have another one, for example
   *     because the last one has just ended; BUSY if they have the most already
   */
  public @Nullable String join(Path mountpoint, Duration timeout) throws MountException {
    if (!(first instanceof KernelBridge kernel) || !kernel.canServeFurther()) {
      throw new MountException(
          Reason.UNAVAILABLE, "this daemon cannot serve another mount point", null);
    }
    KernelBridge session = kernel.further(mountpoint, memory);
    add(session);
    try {
      session.mount(timeout);
    } catch (Throwable e) {
      session.abandon();
      throw e;
    }
    log.info("also mounted on {}", mountpoint);
    return session.device();
  }

  private synchronized void add(KernelBridge session) throws MountException {
    further.removeIf(KernelBridge::hasEnded);
    if (isOver) {
      throw new MountException(Reason.UNAVAILABLE, "this daemon is ending", null);
    }
    if (further.size() >= MOST - 1) {
      throw new MountException(
          Reason.BUSY, "it already has " + MOST + " mount points, the most that it serves", null);
    }
    further.add(session);
  }

  private synchronized List<KernelBridge> further() {
    further.removeIf(KernelBridge::hasEnded);
    return List.copyOf(further);
  }

  private Stream<Bridge> all() {
    return Stream.concat(Stream.of(first), further().stream());
  }

  /** The device numbers of all sessions that have not ended, as far as known. */
  public List<String> devices() {
    boolean hasFirst = !(first instanceof KernelBridge kernel && kernel.hasEnded());
    return (hasFirst ? all() : further().stream())
        .map(Bridge::device)
        .filter(Objects::nonNull)
        .toList();
  }

  @Override
  public String name() {
    return first.name();
  }

  @Override
  public ReadMode readMode() {
    return first.readMode();
  }

  @Override
  public String readModeReason() {
    return first.readModeReason();
  }

  @Override
  public RequestLatencies latencies() {
    return first.latencies();
  }

  @Override
  public void listen(RequestListener listener) {
    first.listen(listener);
  }

  @Override
  public List<AskedRequest> waiting(long leastNanos) {
    long now = System.nanoTime();
    return all()
        .flatMap(session -> session.waiting(leastNanos).stream())
        .sorted(Comparator.comparingLong(asked -> asked.beginNanos() - now))
        .toList();
  }

  /** Only of the first session: only root's sessions leave opens to the kernel. */
  @Override
  public long opensLeftToKernel() {
    return first.opensLeftToKernel();
  }

  @Override
  public long bytesLeftToKernel() {
    return first.bytesLeftToKernel();
  }

  @Override
  public long sourceBytesLeftToKernel() {
    return first.sourceBytesLeftToKernel();
  }

  @Override
  public void mount(Duration timeout) throws MountException {
    first.mount(timeout);
  }

  @Override
  public boolean outlivesProcess() {
    return first.outlivesProcess();
  }

  @Override
  public boolean hasIdleWorker() {
    return all().anyMatch(Bridge::hasIdleWorker);
  }

  @Override
  public boolean waitsInRoot() {
    return all().anyMatch(Bridge::waitsInRoot);
  }

  @Override
  public long answered() {
    return all().mapToLong(Bridge::answered).sum();
  }

  @Override
  public boolean hasFailed() {
    return first.hasFailed();
  }

  @Override
  public boolean freeze(Duration timeout) throws InterruptedException {
    return first.freeze(timeout);
  }

  /** Unmounts the first session only. */
  @Override
  public void unmount(boolean lazy) throws MountException {
    first.unmount(lazy);
  }

  /** Detaches all sessions, and accepts no further ones. */
  public void detach() throws MountException {
    synchronized (this) {
      isOver = true;
    }
    for (Bridge session : all().toList()) {
      session.unmount(true);
    }
  }

  /** Whether the first session is at its mount point. */
  @Override
  public boolean isAtMountpoint() {
    return first.isAtMountpoint();
  }

  /** The device of a session that has not ended, if there is one. */
  @Override
  public @Nullable String device() {
    List<String> devices = devices();
    return devices.isEmpty() ? first.device() : devices.get(0);
  }

  /** Waits for all sessions. */
  @Override
  public boolean awaitEnd(Duration timeout) throws InterruptedException {
    long end = System.nanoTime() + timeout.toNanos();
    for (Bridge session : all().toList()) {
      if (!session.awaitEnd(Duration.ofNanos(Math.max(0, end - System.nanoTime())))) {
        return false;
      }
    }
    synchronized (this) {
      boolean isLast = further().isEmpty();
      isOver |= isLast;
      return isLast;
    }
  }
}
