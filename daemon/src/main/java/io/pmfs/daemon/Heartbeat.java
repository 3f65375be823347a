package io.pmfs.daemon;

import io.pmfs.fuse.Bridge;
import io.pmfs.settings.Reason;
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
 * Tells the supervisor that the mount answers, by asking something through it now and then. A
 * daemon whose workers are all busy is well as long as one of them gets on, or the source or a peer
 * owes an answer. One that is stopped, has idle workers and does not answer, or whose workers all
 * hang in itself or in a tier's disk, is not.
 *
 * <p>INVARIANT: it is another process that asks. A thread that waits for an answer which its own
 * process was to give cannot be killed, so that process would never end and nobody go on for it.
 */
final class Heartbeat implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Heartbeat.class);
  private static final Duration INTERVAL = Duration.ofSeconds(1);

  /** For each line asks for the file $1, and answers a line whether it is there or not. */
  static final String ASK = "while read -r _; do [ -e \"$1\" ]; echo; done";

  private final Path mountpoint;
  private final Supervision supervision;
  private final MountedDataset dataset;
  private final Runnable eachTime;
  private final InstantSource clock;
  private final Supplier<String> question;
  private final CountDownLatch closed = new CountDownLatch(1);
  private volatile @Nullable Process asker;
  private boolean withoutAsker;
  private volatile boolean asking;
  private long progress;

  /**
   * Not beating yet.
   *
   * @param eachTime done once in a second
   */
  Heartbeat(
      Path mountpoint,
      Supervision supervision,
      MountedDataset dataset,
      Runnable eachTime,
      InstantSource clock) {
    this(mountpoint, supervision, dataset, eachTime, clock, () -> ASK);
  }

  /**
   * The same with another question.
   *
   * @param question a script of the shell, which gets a path in the mount, and answers each line
   */
  Heartbeat(
      Path mountpoint,
      Supervision supervision,
      MountedDataset dataset,
      Runnable eachTime,
      InstantSource clock,
      Supplier<String> question) {
    this.question = question;
    this.mountpoint = mountpoint;
    this.supervision = supervision;
    this.dataset = dataset;
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
        boolean idle = dataset.hasIdleWorker();
        boolean works = getsOn();
        if (!dataset.isAtMountpoint()) {
          // Who would answer there is another.
          if (idle || works) {
            supervision.touch(clock);
          }
        } else if (!asking) {
          ask();
        } else if (!idle && works) {
          supervision.touch(clock);
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

  /** Whether anything was done since the last time, or the source is waited for. */
  private boolean getsOn() {
    long before = progress;
    progress = dataset.progress();
    return progress != before || dataset.waitsForSource();
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
          new ProcessBuilder(
                  "/bin/sh", "-c", question.get(), "sh", mountpoint + "/" + Bridge.HEARTBEAT)
              .start();
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
