package io.pmfs.daemon;

import com.google.gson.JsonObject;
import io.pmfs.daemon.control.ControlRequests;
import io.pmfs.daemon.dataset.MountedDataset;
import io.pmfs.daemon.dataset.MountedOutputs;
import io.pmfs.daemon.dataset.Observation;
import io.pmfs.daemon.process.ExternalUnmount;
import io.pmfs.daemon.process.PrivateNamespace;
import io.pmfs.daemon.process.Supervision;
import io.pmfs.daemon.report.NodesReport;
import io.pmfs.daemon.report.StatusReport;
import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.daemon.tasks.Drains;
import io.pmfs.daemon.tasks.KeptTasks;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.MountTable;
import io.pmfs.machine.Reason;
import io.pmfs.mounts.DaemonRecord;
import io.pmfs.mounts.Registration;
import io.pmfs.mounts.Registry;
import io.pmfs.places.Surroundings;
import io.pmfs.posix.DaemonThread;
import io.pmfs.settings.MountSettings;
import io.pmfs.settings.SessionSettings;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The life of one mount: mount, register, serve until unmounted, stop in order.
 *
 * <p>Only the thread in {@link #run} stops the daemon. Control requests and signals unmount, which
 * wakes that thread.
 */
public final class Daemon implements ControlRequests {
  private static final Logger log = LoggerFactory.getLogger(Daemon.class);

  private static final Duration GRACE = Duration.ofSeconds(3);

  private final MountSettings settings;
  private final SessionSettings session;
  private final Path logFile;
  private final Surroundings surroundings;
  private final InstantSource clock;
  private final @Nullable Supervision supervision;
  private final IntConsumer halt;
  private final Instant started;
  private final MountedDataset dataset;
  private final Observation observation;
  private static final Duration ANSWER_FIRST = Duration.ofMillis(200);
  private static final Duration LOOK = Duration.ofSeconds(1);

  private final KeptMount kept;
  private final PrivateNamespace namespace;
  private final CountDownLatch ended = new CountDownLatch(1);

  /** Held while unmounting, so that the rest of a request is known before the daemon stops. */
  private final ReentrantLock unmounting = new ReentrantLock();

  private volatile boolean announced;
  private volatile boolean stopping;
  private volatile @Nullable Thread runner;
  private volatile @Nullable Presence shown;

  /**
   * Opens the dataset without mounting it.
   *
   * @param session the origin of the settings
   */
  public Daemon(
      MountSettings settings, SessionSettings session, Path logFile, Invocation invocation)
      throws MountFailure {
    this.settings = settings;
    this.session = session;
    this.logFile = logFile;
    this.surroundings = invocation.surroundings();
    this.clock = invocation.clock();
    this.supervision = invocation.supervision();
    this.halt = invocation.halt();
    this.started = clock.instant();
    this.dataset = invocation.opener().open(settings, session);
    this.namespace = new PrivateNamespace(surroundings, supervision, System::nanoTime);
    this.kept =
        new KeptMount(settings.bridge().linger(), surroundings, supervision, System::nanoTime);
    this.observation =
        new Observation(
            settings.observation().metrics(),
            dataset::snapshot,
            this::status,
            clock,
            surroundings.hostName());
  }

  /**
   * Serves until the mount is gone. Runs {@code ready} once the mount answers and is registered.
   *
   * @param registration the mount point's place in the registry, which this daemon releases; null
   *     if a daemon that resumes a session could not get it
   */
  public void run(Registry registry, @Nullable Registration registration, Runnable ready)
      throws MountFailure {
    runner = Thread.currentThread();
    try (Presence presence =
        new Presence(settings.mountpoint(), registry, registration, this, this::entry)) {
      shown = presence;
      try (dataset;
          observation) {
        serve(presence, registry, ready);
      }
      if (dataset.isSaved()) {
        presence.markSaved();
      }
      log.info("{} unmounted and stopped", settings.mountpoint());
    } finally {
      sweepHolders(registry);
      ended.countDown(); // the process may end from here on
    }
  }

  private void sweepHolders(Registry registry) {
    try {
      registry.sweepHolders(surroundings);
      KeptMount.sweep(registry, surroundings);
    } catch (MountFailure e) {
      log.warn("records of mounts that are gone: {}", e.line());
    }
  }

  private void serve(Presence presence, Registry registry, Runnable ready) throws MountFailure {
    try {
      observation.open(supervision != null && supervision.isResumed());
      dataset.start();
      serveSupervised(presence, registry, ready);
    } catch (MountFailure | RuntimeException | Error e) {
      if (isNeeded()) {
        // Closing the dataset would unmount it.
        log.error("{}: failed; another daemon must take over", settings.mountpoint(), e);
        halt.accept(ExitStatus.UNAVAILABLE);
      }
      throw e;
    }
  }

  /** Whether readers may already use the session, and another daemon can continue it. */
  private boolean isNeeded() {
    return supervision != null
        && dataset.outlivesProcess()
        && supervision.isHeld()
        && (supervision.isResumed() || announced)
        && !stopping;
  }

  /** From here on the supervisor replaces this daemon if it dies, but not if it stops. */
  private void serveSupervised(Presence presence, Registry registry, Runnable ready)
      throws MountFailure {
    Supervision tie = supervision;
    if (tie == null || !dataset.outlivesProcess()) {
      serveUntilUnmounted(presence, registry, ready);
      return;
    }
    boolean isUnmounted = false;
    try (Heartbeat heartbeat =
        new Heartbeat(
            settings.mountpoint(),
            tie,
            dataset,
            () -> keepReadMode(tie),
            clock,
            Heartbeat.INTERVAL,
            () -> Heartbeat.ASK)) {
      if (!tie.hasSettings()) {
        keepSettings(tie);
      }
      tie.begin(settings.mountpoint(), dataset.readMode(), logFile);
      heartbeat.start();
      serveUntilUnmounted(presence, registry, ready);
      isUnmounted = true;
    } catch (IOException e) {
      throw new MountFailure(ExitStatus.FAILED, "session file: " + Reason.of(e), e);
    } finally {
      if (isUnmounted || !isNeeded()) {
        tie.end();
      }
    }
  }

  /** Must precede the session file, so that a later daemon uses these settings. */
  private void keepSettings(Supervision tie) throws IOException {
    tie.keep(session.of(dataset.sourceIdentity()));
  }

  /** The read mode may be chosen while the mount is in use. */
  private void keepReadMode(Supervision tie) {
    try {
      tie.begin(settings.mountpoint(), dataset.readMode(), logFile);
    } catch (IOException e) {
      log.debug("session file: {}", Reason.of(e));
    }
  }

  /** How the mount differs from the source's own files; empty if it does not. */
  public String description() {
    return dataset.description();
  }

  @Override
  public void upgrade() throws MountFailure {
    if (supervision == null || !dataset.outlivesProcess() || !supervision.isHeld()) {
      throw new MountFailure(
          ExitStatus.FAILED,
          settings.mountpoint()
              + ": cannot be upgraded while mounted: no supervisor holds it; unmount and mount it"
              + " again");
    }
    requireSuccessor(supervision);
    log.info("asked to hand over to the installed version");
    // In another thread, so that this request is answered first.
    DaemonThread.start("hand-over", this::handOver);
  }

  /**
   * Fails if a next daemon could not continue, for example because another directory is at the
   * source's path.
   */
  private void requireSuccessor(Supervision tie) throws MountFailure {
    String problem = dataset.otherSource();
    if (problem == null) {
      try {
        keepSettings(tie);
        SessionSettings kept = tie.settings();
        if (kept != null) {
          kept.toSettings(surroundings);
        }
      } catch (MountFailure e) {
        problem = e.line();
      } catch (IOException e) {
        problem = "the session's settings cannot be written: " + Reason.of(e);
      }
    }
    if (problem != null) {
      log.warn("hand-over refused: {}", problem);
      throw new MountFailure(
          ExitStatus.FAILED, settings.mountpoint() + ": not upgraded: " + problem);
    }
  }

  private void handOver() {
    try {
      Thread.sleep(ANSWER_FIRST.toMillis());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    try {
      if (!dataset.handOver()) {
        // This half-stopped process may lose requests; the kernel sends them again to the next one.
        log.warn("requests are still in progress: handing over anyway");
      }
      if (supervision != null) {
        keepReadMode(supervision);
      }
      log.info("handed over");
    } catch (RuntimeException | Error e) {
      log.error("not everything could be closed: handing over anyway", e);
    } finally {
      // This process may already be unable to answer requests.
      halt.accept(ExitStatus.HANDED_OVER);
    }
  }

  private DaemonRecord entry() {
    return new DaemonRecord(
        settings.mountpoint().toString(),
        settings.source().path().toString(),
        ProcessHandle.current().pid(),
        "",
        logFile.toString(),
        dataset.device(),
        false,
        dataset.devices(),
        supervision != null && dataset.outlivesProcess());
  }

  private void serveUntilUnmounted(Presence presence, Registry registry, Runnable ready)
      throws MountFailure {
    try {
      if (supervision == null || !supervision.isResumed()) {
        kept.begin(settings.mountpoint(), dataset.device(), registry);
      }
      appear(presence);
      log.info("{} mounted on {}", settings.source().path(), settings.mountpoint());
      if (stopping) {
        unmountByForce();
      } else {
        ready.run();
        announced = true;
      }
      awaitUnmounted(presence);
      if (dataset.hasFailed() && dataset.outlivesProcess()) {
        log.error("{}: this daemon can no longer answer requests", settings.mountpoint());
        halt.accept(ExitStatus.FAILED);
      }
      log.info("{} is unmounted; stopping", settings.mountpoint());
      unmounting.lockInterruptibly();
      unmounting.unlock();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new MountFailure(ExitStatus.FAILED, settings.mountpoint() + ": interrupted", e);
    } finally {
      presence.fallSilent();
    }
  }

  /** A resumed session continues even if the control socket cannot be created. */
  private void appear(Presence presence) throws MountFailure {
    if (supervision != null && supervision.isResumed()) {
      presence.update(dataset.isAtMountpoint());
      return;
    }
    try {
      presence.appear();
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.FAILED, settings.mountpoint() + ": control socket: " + Reason.of(e), e);
    }
  }

  private void awaitUnmounted(Presence presence) throws InterruptedException {
    try {
      while (!dataset.awaitUnmounted(LOOK)) {
        // A stopping daemon keeps its place until everything is closed.
        if (!stopping) {
          presence.update(dataset.isAtMountpoint());
          kept.look(dataset.device());
          if (namespace.isAbandoned(dataset.devices())) {
            log.info("no process is left in the mount namespace: the daemon ends with it");
            unmountByForce();
          }
        }
      }
    } catch (InterruptedException e) {
      if (!stopping) {
        throw e;
      }
    }
  }

  /**
   * For signals: unmounts, lazily if busy. Readers with open files get a short grace. Returns true
   * once the daemon has stopped, or false after the limit.
   */
  public boolean stop(Duration limit) {
    stopping = true;
    try {
      if (ended.getCount() == 0) {
        return true;
      }
      unmountByForce();
      if (!ended.await(GRACE.toMillis(), TimeUnit.MILLISECONDS)) {
        log.warn("{}: files are still open; stopping anyway", settings.mountpoint());
        dataset.close();
        Thread waiting = runner;
        if (waiting != null) {
          waiting.interrupt(); // the kernel keeps a session while files are open
        }
      }
      return ended.await(limit.toMillis(), TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private void unmountByForce() {
    kept.end(dataset.device());
    try {
      dataset.unmount(false);
    } catch (MountFailure busy) {
      log.warn("{}: {}; unmounting lazily", settings.mountpoint(), busy.line());
      try {
        dataset.unmount(true);
      } catch (MountFailure e) {
        log.error("{}: {}", settings.mountpoint(), e.line());
      }
    }
    unmountOthers();
  }

  /** Detaches the other mount points, which this daemon served, too. With --user, only root can. */
  private void unmountOthers() {
    if (settings.isMountedByAnother() || (supervision != null && supervision.mountsForUser())) {
      return;
    }
    DaemonRecord own = entry();
    try {
      for (MountTable.Mount mount : surroundings.mounts().all()) {
        if (mount.isPmfs() && own.shows(mount)) {
          ExternalUnmount.run(mount, true, surroundings);
        }
      }
    } catch (MountFailure e) {
      log.error("{}: {}", settings.mountpoint(), e.line());
    }
  }

  @Override
  public StatusReport status() {
    StatusReport report = dataset.status();
    long uptimeSeconds = Duration.between(started, clock.instant()).toSeconds();
    return report.with(
        report.mount().with(kept.left()),
        report
            .daemon()
            .with(surroundings.userName(), uptimeSeconds, logFile.toString(), observation.url()));
  }

  @Override
  public String metrics() {
    return observation.text();
  }

  @Override
  public JsonObject configuration() {
    return session.of(dataset.sourceIdentity()).toReport();
  }

  @Override
  public @Nullable NodesReport nodes() throws InterruptedException {
    return dataset.nodes();
  }

  @Override
  public RequestLog requests() {
    return dataset.requests();
  }

  @Override
  public KeptTasks tasks() {
    return dataset.tasks();
  }

  @Override
  public @Nullable Drains drains() {
    return dataset instanceof MountedOutputs outputs ? outputs.drains() : null;
  }

  @Override
  public @Nullable String join(Path mountpoint, Duration timeout) throws MountFailure {
    log.info("asked to serve {} too", mountpoint);
    String device = dataset.join(mountpoint, timeout);
    Presence presence = shown;
    if (presence != null) {
      presence.refresh();
    }
    if (stopping) {
      unmountOthers();
    }
    return device;
  }

  @Override
  public boolean serves(String device) {
    List<String> own = dataset.devices();
    return own.isEmpty() || own.contains(device);
  }

  @Override
  public void unmount(boolean lazy, boolean purge, boolean abandon) throws MountFailure {
    log.info("asked to unmount{}{}", lazy ? " lazily" : "", purge ? " and purge" : "");
    unmounting.lock();
    try {
      String device = dataset.device();
      dataset.unmount(lazy);
      kept.end(device);
      if (dataset instanceof MountedOutputs outputs) {
        outputs.waitForSource(!abandon);
      }
      if (purge) {
        dataset.purge();
      }
    } finally {
      unmounting.unlock();
    }
  }
}
