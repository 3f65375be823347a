package io.pmfs.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.UserDefinedFileAttributeView;
import java.time.Duration;
import java.time.InstantSource;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells the supervisor that the mount answers, by asking something through it now and then. A
 * daemon whose workers all wait for a source that does not answer is well, only busy; one that is
 * stopped, or has idle workers and does not answer, is not.
 */
final class Heartbeat implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Heartbeat.class);
  private static final String ATTRIBUTE = "pmfs.heartbeat";
  private static final Duration INTERVAL = Duration.ofSeconds(1);

  private final Path mountpoint;
  private final Supervision supervision;
  private final BooleanSupplier hasIdleWorker;
  private final InstantSource clock;
  private final CountDownLatch closed = new CountDownLatch(1);
  private volatile boolean asking;

  Heartbeat(
      Path mountpoint,
      Supervision supervision,
      BooleanSupplier hasIdleWorker,
      InstantSource clock) {
    this.mountpoint = mountpoint;
    this.supervision = supervision;
    this.hasIdleWorker = hasIdleWorker;
    this.clock = clock;
  }

  void start() {
    daemon("heartbeat", this::beat);
  }

  private void beat() {
    try {
      while (!closed.await(INTERVAL.toMillis(), TimeUnit.MILLISECONDS)) {
        if (asking && !hasIdleWorker.getAsBoolean()) {
          supervision.touch(clock);
        } else if (!asking) {
          asking = true;
          // On a thread of its own: it may never come back.
          daemon("heartbeat-probe", this::ask);
        }
      }
    } catch (IOException e) {
      log.warn(
          "the session file is gone ({}): the supervisor cannot see that this daemon is well",
          e.getMessage());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * An extended attribute that is not there: the kernel asks us each time, and we need not ask the
   * source.
   */
  private void ask() {
    try {
      Files.getFileAttributeView(mountpoint, UserDefinedFileAttributeView.class).size(ATTRIBUTE);
    } catch (IOException e) {
      // Refused is answered, too.
      log.trace("heartbeat: {}", e.getMessage());
    }
    try {
      supervision.touch(clock);
    } catch (IOException e) {
      log.debug("heartbeat: {}", e.getMessage());
    }
    asking = false;
  }

  private static void daemon(String name, Runnable body) {
    Thread thread = new Thread(body, name);
    thread.setDaemon(true);
    thread.start();
  }

  @Override
  public void close() {
    closed.countDown();
  }
}
