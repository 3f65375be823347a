package io.pmfs.daemon;

import io.pmfs.daemon.dataset.MountLife;
import io.pmfs.daemon.process.Supervision;
import io.pmfs.fuse.Bridge;
import io.pmfs.machine.Reason;
import io.pmfs.posix.DaemonThread;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Shows the supervisor that the mount works, by sending requests through it. A daemon whose workers
 * are all busy counts as working while one of them makes progress, or while a request to the source
 * or a peer is outstanding, and while the kernel may hold back the check because another request
 * changes names of the root. It does not count as working if it is stopped, does not answer
 * although it has idle workers, or if all workers hang in the daemon or in a tier's disk.
 *
 * <p>INVARIANT: another process sends the requests. A thread that waits for an answer of its own
 * process cannot be killed: that process would never end, and none could replace it.
 */
final class Heartbeat implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Heartbeat.class);
  static final Duration INTERVAL = Duration.ofSeconds(1);

  /** For each line of input, looks for the file $1 and then prints a line, found or not. */
  static final String ASK = "while read -r _; do [ -e \"$1\" ]; echo; done";

  private final Path mountpoint;
  private final Supervision supervision;
  private final MountLife mount;
  private final Runnable eachTime;
  private final InstantSource clock;
  private final Duration interval;
  private final Supplier<String> question;
  private final CountDownLatch closed = new CountDownLatch(1);
  private volatile @Nullable Process asker;
  private boolean withoutAsker;
  private boolean asking;
  private long progress;

  /**
   * Does not start yet.
   *
   * @param eachTime runs at each interval
   * @param question a shell script that gets a path in the mount and answers each line of input
   */
  Heartbeat(
      Path mountpoint,
      Supervision supervision,
      MountLife mount,
      Runnable eachTime,
      InstantSource clock,
      Duration interval,
      Supplier<String> question) {
    this.interval = interval;
    this.question = question;
    this.mountpoint = mountpoint;
    this.supervision = supervision;
    this.mount = mount;
    this.eachTime = eachTime;
    this.clock = clock;
  }

  /** Starts process and thread now, because that may fail later. */
  void start() {
    asker = startAsker();
    DaemonThread.lasting("heartbeat", this::beat).start();
  }

  private void beat() {
    try {
      while (!closed.await(interval.toMillis(), TimeUnit.MILLISECONDS)) {
        eachTime.run();
        readAnswers();
        boolean idle = mount.hasIdleWorker();
        boolean works = makesProgress();
        if (!mount.isAtMountpoint()) {
          // If another mount is on top, it would answer.
          if (idle || works) {
            supervision.touch(clock);
          }
        } else if (!asking) {
          ask();
        } else if ((!idle && works) || mount.locksRoot()) {
          supervision.touch(clock);
        }
      }
    } catch (IOException e) {
      log.warn(
          "no more heartbeats ({}): the supervisor cannot tell that this daemon works",
          Reason.of(e));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Whether there was progress since the last call or a request to the source is outstanding. */
  private boolean makesProgress() {
    long before = progress;
    progress = mount.progress();
    return progress != before || mount.waitsForSource();
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

  /** Null if no process can be started: replacing the daemon would not help then. */
  private @Nullable Process startAsker() {
    try {
      Process process =
          new ProcessBuilder(
                  "/bin/sh", "-c", question.get(), "sh", mountpoint + "/" + Bridge.HEARTBEAT)
              .start();
      withoutAsker = false;
      return process;
    } catch (IOException | OutOfMemoryError e) {
      if (!withoutAsker) {
        log.warn(
            "heartbeats continue without checking the mount for now: {}",
            e instanceof IOException failed ? Reason.of(failed) : e.getMessage());
      }
      withoutAsker = true;
      return null;
    }
  }

  /** Reads the available answers. */
  private void readAnswers() throws IOException {
    Process process = asker;
    if (process == null || !process.isAlive()) {
      asking = false;
      return;
    }
    InputStream answers = process.getInputStream();
    while (answers.available() > 0 && answers.read() >= 0) {
      supervision.touch(clock);
      asking = false;
    }
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
