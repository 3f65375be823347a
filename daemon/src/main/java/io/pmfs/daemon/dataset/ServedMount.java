package io.pmfs.daemon.dataset;

import io.pmfs.cluster.client.Peers;
import io.pmfs.contents.CacheContents;
import io.pmfs.daemon.metrics.Snapshot;
import io.pmfs.daemon.report.ClusterReport;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.fuse.ReadMode;
import io.pmfs.fuse.mounting.MountException;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.places.SourceIdentity;
import io.pmfs.places.TierSpec;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The life of a mount of either kind: mounts the session, ends it or hands it over, then closes the
 * parts once.
 */
public abstract class ServedMount implements MountedDataset {
  private static final Logger log = LoggerFactory.getLogger(ServedMount.class);

  private static final Duration LOOK_AT_SOURCE = Duration.ofSeconds(2);
  private static final Duration HAND_OVER = Duration.ofSeconds(30);

  /** Shorter than {@code pmfs status --all-nodes} waits for this daemon. */
  private static final Duration ALL_NODES = Duration.ofSeconds(20);

  protected final KernelSession session;
  private final DatasetSource source;
  private final Duration lastRequests;
  private final AtomicBoolean closed = new AtomicBoolean();
  private volatile boolean started;
  private volatile boolean purge;
  private volatile boolean isSaved;

  /**
   * Does not mount yet.
   *
   * @param lastRequests how long {@link #close} waits for readers once it has unmounted
   */
  protected ServedMount(KernelSession session, DatasetSource source, Duration lastRequests) {
    this.session = session;
    this.source = source;
    this.lastRequests = lastRequests;
  }

  /** Mounts, between any steps that must precede and follow. */
  protected abstract void serve() throws MountFailure;

  /** Closes all parts for the next daemon, which continues the session. */
  protected abstract void suspend();

  /**
   * Closes all parts after the session.
   *
   * @param wasStarted whether mounting was attempted
   * @return as {@link #isSaved}
   */
  protected abstract boolean finish(boolean wasStarted);

  /** The other nodes; null without a cluster. */
  protected abstract @Nullable Peers peers();

  @Override
  public final void start() throws MountFailure {
    started = true;
    serve();
  }

  protected final void mount(Duration timeout) throws MountFailure {
    try {
      session.bridge().mount(timeout);
    } catch (MountException e) {
      throw DatasetWiring.failure(e);
    }
  }

  @Override
  public @Nullable String join(Path mountpoint, Duration timeout) throws MountFailure {
    try {
      return session.bridge().join(mountpoint, timeout);
    } catch (MountException e) {
      throw e.reason() == MountException.Reason.BUSY
          ? new MountFailure(ExitStatus.IN_USE, String.valueOf(e.getMessage()), e)
          : DatasetWiring.failure(e);
    }
  }

  @Override
  public void unmount(boolean lazy) throws MountFailure {
    try {
      session.bridge().unmount(lazy);
    } catch (MountException e) {
      throw DatasetWiring.failure(e);
    }
  }

  @Override
  public boolean hasIdleWorker() {
    return session.bridge().hasIdleWorker();
  }

  @Override
  public boolean locksRoot() {
    return false;
  }

  @Override
  public boolean isAtMountpoint() {
    return session.bridge().isAtMountpoint();
  }

  @Override
  public @Nullable String device() {
    return session.bridge().device();
  }

  @Override
  public List<String> devices() {
    return session.bridge().devices();
  }

  @Override
  public boolean hasFailed() {
    return session.bridge().hasFailed();
  }

  @Override
  public ReadMode readMode() {
    return session.bridge().readMode();
  }

  @Override
  public boolean outlivesProcess() {
    return session.bridge().outlivesProcess();
  }

  @Override
  public boolean awaitUnmounted(Duration limit) throws InterruptedException {
    return session.bridge().awaitEnd(limit);
  }

  @Override
  public SourceIdentity sourceIdentity() {
    return source.sourceIdentity();
  }

  @Override
  public @Nullable String otherSource() {
    try {
      return source.replacement(LOOK_AT_SOURCE);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return null;
    }
  }

  @Override
  public @Nullable NodesReport nodes() throws InterruptedException {
    Peers peers = peers();
    StatusReport own = status();
    ClusterReport seen = own.cluster();
    return peers == null || seen == null ? null : NodesReport.ask(own, seen, peers, ALL_NODES);
  }

  @Override
  public Snapshot snapshot() {
    return new Snapshot(status(), 0, 0, 0);
  }

  @Override
  public RequestLog requests() {
    return session.requests();
  }

  @Override
  public boolean handOver() {
    try {
      if (!session.bridge().freeze(HAND_OVER)) {
        return false;
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
    if (closed.compareAndSet(false, true)) {
      suspend();
    }
    return true;
  }

  @Override
  public void purge() {
    purge = true;
  }

  @Override
  public boolean isSaved() {
    return isSaved;
  }

  /**
   * Drops all copies and state if that is wanted. Call it once everything is closed.
   *
   * @return false if something is left
   */
  protected final boolean dropIfWanted(List<TierSpec> tiers, Path state) {
    try {
      if (purge) {
        CacheContents.purge(tiers, state);
      }
      return true;
    } catch (MountFailure e) {
      log.warn("{}: not everything was purged: {}", session.settings().mountpoint(), e.line());
      return false;
    }
  }

  @Override
  public final void close() {
    if (closed.compareAndSet(false, true)) {
      if (started) {
        endSession();
      }
      isSaved = finish(started);
    }
  }

  private void endSession() {
    try {
      if (!session.bridge().awaitEnd(Duration.ZERO)) {
        session.bridge().detach();
        session.bridge().awaitEnd(lastRequests);
      }
    } catch (MountException e) {
      log.warn("{}", e.getMessage());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
