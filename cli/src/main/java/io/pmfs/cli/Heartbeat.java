package io.pmfs.cli;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells the supervisor that the mount answers, by asking something through it now and then. A
 * daemon whose workers all wait for a source that does not answer is well, only busy; one that is
 * stopped, or has idle workers and does not answer, is not.
 *
 * <p>INVARIANT: it is another process that asks. A thread that waits for an answer which its own
 * process was to give cannot be killed, so that process would never end and nobody go on for it.
 */
final class Heartbeat implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Heartbeat.class);
  private static final Duration INTERVAL = Duration.ofSeconds(1);

  /** For each line asks for the file $1, and answers a line whether it is there or not. */
  private static final String ASK = "while read -r _; do [ -e \"$1\" ]; echo; done";

  /** Too long: the kernel asks us each time, and we need not ask the source. */
  static final String NAME = "x".repeat(300);

  private final Path mountpoint;
  private final Supervision supervision;
  private final BooleanSupplier hasIdleWorker;
  private final Runnable eachTime;
  private final InstantSource clock;
  private final CountDownLatch closed = new CountDownLatch(1);
  private volatile @Nullable Process asker;
  private boolean withoutAsker;
  private volatile boolean asking;

  /**
   * Not beating yet.
   *
   * @param eachTime done once in a second
   */
  Heartbeat(
      Path mountpoint,
      Supervision supervision,
      BooleanSupplier hasIdleWorker,
      Runnable eachTime,
      InstantSource clock) {
    this.mountpoint = mountpoint;
    this.supervision = supervision;
    this.hasIdleWorker = hasIdleWorker;
    this.eachTime = eachTime;
    this.clock = clock;
  }

  void start() {
    daemon("heartbeat", this::beat);
  }

  private void beat() {
    try {
      while (!closed.await(INTERVAL.toMillis(), TimeUnit.MILLISECONDS)) {
        eachTime.run();
        if (asking && !hasIdleWorker.getAsBoolean()) {
          supervision.touch(clock);
        } else if (!asking) {
          ask();
        }
      }
    } catch (IOException e) {
      log.warn(
          "no more heartbeats ({}): the supervisor cannot see that this daemon is well",
          Reason.of(e));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void ask() throws IOException {
    Process process = asker;
    if (process == null || !process.isAlive()) {
      process = startAsker();
      if (process == null) {
        supervision.touch(clock);
        return;
      }
      asker = process;
      InputStream answers = process.getInputStream();
      daemon("heartbeat-answers", () -> listen(answers));
    }
    asking = true;
    OutputStream questions = process.getOutputStream();
    try {
      questions.write('\n');
      questions.flush();
    } catch (IOException e) {
      log.debug("heartbeat: {}", e.getMessage());
      asking = false;
    }
  }

  /** Null if there is no room for one: to be replaced would not help against that. */
  private @Nullable Process startAsker() {
    try {
      Process process =
          new ProcessBuilder("/bin/sh", "-c", ASK, "sh", mountpoint + "/" + NAME).start();
      withoutAsker = false;
      return process;
    } catch (IOException e) {
      if (!withoutAsker) {
        log.warn("the heartbeat goes on unasked for now: {}", Reason.of(e));
      }
      withoutAsker = true;
      return null;
    }
  }

  private void listen(InputStream answers) {
    try {
      while (answers.read() >= 0) {
        supervision.touch(clock);
        asking = false;
      }
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
    Process process = asker;
    if (process != null) {
      process.destroyForcibly();
    }
  }
}
