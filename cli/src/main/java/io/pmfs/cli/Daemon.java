package io.pmfs.cli;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The life of one mount: mount, tell others, serve until unmounted, stop in order.
 *
 * <p>The thread in {@link #run} does the stopping, whatever the cause; control requests and signals
 * only unmount, which wakes it.
 */
final class Daemon implements ControlRequests {
  private static final Logger log = LoggerFactory.getLogger(Daemon.class);

  private static final Duration GRACE = Duration.ofSeconds(3);

  private final MountSettings settings;
  private final Path logFile;
  private final InstantSource clock;
  private final Instant started;
  private final MountedDataset dataset;
  private final CountDownLatch ended = new CountDownLatch(1);

  /** Held while unmounting, so that a purge is asked for before the stopping begins. */
  private final ReentrantLock unmounting = new ReentrantLock();

  private volatile boolean stopping;
  private volatile @Nullable Thread runner;

  Daemon(MountSettings settings, Path logFile, InstantSource clock, MountOpener opener)
      throws MountFailure {
    this.settings = settings;
    this.logFile = logFile;
    this.clock = clock;
    this.started = clock.instant();
    this.dataset = opener.open(settings);
  }

  /** Serves until the mount is gone; {@code ready} runs once it answers and can be found. */
  void run(Registration registration, Runnable ready) throws MountFailure {
    runner = Thread.currentThread();
    try (registration) {
      try (dataset) {
        dataset.start();
        serve(registration, ready);
      }
      log.info("{} unmounted and stopped", settings.mountpoint());
    } finally {
      ended.countDown();
    }
  }

  private void serve(Registration registration, Runnable ready) throws MountFailure {
    try (ControlServer control = ControlServer.start(registration.socket(), this)) {
      registration.publish(
          new Registry.Entry(
              settings.mountpoint().toString(),
              settings.source().toString(),
              ProcessHandle.current().pid(),
              registration.socket().toString(),
              logFile.toString()));
      log.info(
          "{} mounted on {}, control socket {}",
          settings.source(),
          settings.mountpoint(),
          control.socket());
      if (stopping) {
        unmountByForce();
      } else {
        ready.run();
      }
      awaitUnmounted();
      log.info("{} is unmounted; stopping", settings.mountpoint());
      unmounting.lockInterruptibly();
      unmounting.unlock();
    } catch (IOException e) {
      throw new MountFailure(
          ExitStatus.FAILED, registration.socket() + ": control socket: " + Reason.of(e), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new MountFailure(ExitStatus.FAILED, settings.mountpoint() + ": interrupted", e);
    }
  }

  private void awaitUnmounted() throws InterruptedException {
    try {
      dataset.awaitUnmounted();
    } catch (InterruptedException e) {
      if (!stopping) {
        throw e;
      }
    }
  }

  /**
   * For signals: unmounts, lazily if busy; readers that still have files open get a short grace.
   * Returns at the end, or false when it did not come within the limit.
   */
  boolean stop(Duration limit) {
    stopping = true;
    try {
      if (ended.getCount() == 0) {
        return true;
      }
      unmountByForce();
      if (!ended.await(GRACE.toMillis(), TimeUnit.MILLISECONDS)) {
        log.warn("{}: files are still open; stopping nevertheless", settings.mountpoint());
        dataset.close();
        Thread waiting = runner;
        if (waiting != null) {
          waiting.interrupt(); // the kernel keeps a session with open files for as long as they are
        }
      }
      return ended.await(limit.toMillis(), TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  private void unmountByForce() {
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
  }

  @Override
  public StatusReport status() {
    return dataset
        .status()
        .with(
            ProcessHandle.current().pid(),
            Duration.between(started, clock.instant()).toSeconds(),
            logFile.toString());
  }

  @Override
  public void unmount(boolean lazy, boolean purge) throws MountFailure {
    log.info("asked to unmount{}{}", lazy ? " lazily" : "", purge ? " and purge" : "");
    unmounting.lock();
    try {
      dataset.unmount(lazy);
      if (purge) {
        dataset.purge();
      }
    } finally {
      unmounting.unlock();
    }
  }
}
