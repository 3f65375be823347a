package io.pmfs.posix;

import java.time.Duration;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Creates threads that do not keep the process alive. Any exception or Error in a thread is logged,
 * and ends at most that thread.
 */
public final class DaemonThread {
  private static final Logger log = LoggerFactory.getLogger(DaemonThread.class);

  private static final long FIRST_PAUSE_MILLIS = 100;
  private static final long LONGEST_PAUSE_MILLIS = 10_000;

  /** After running this long without failure, work restarts with the shortest pause. */
  private static final long WELL_NANOS = TimeUnit.MINUTES.toNanos(1);

  /** Starts threads; replaced by tests that simulate failure. */
  static volatile Consumer<Thread> starter = Thread::start;

  private DaemonThread() {}

  public static Thread of(String name, Runnable work) {
    return make(name, () -> runOnce(name, work));
  }

  private static Thread make(String name, Runnable body) {
    Thread thread = new Thread(body, name);
    thread.setDaemon(true);
    return thread;
  }

  private static void runOnce(String name, Runnable work) {
    try {
      work.run();
    } catch (RuntimeException | Error e) {
      report(name, "ends", e);
    }
  }

  static void report(String name, String what, Throwable why) {
    try {
      log.error("thread {} {}", name, what, why);
    } catch (RuntimeException | Error e) {
      // There may be no memory for the log line either.
    }
  }

  /**
   * Starts a thread.
   *
   * @throws OutOfMemoryError if it cannot be started now: the caller does the work itself, or skips
   *     it and releases what it had acquired for it
   */
  public static Thread start(String name, Runnable work) {
    Thread thread = of(name, work);
    starter.accept(thread);
    return thread;
  }

  /**
   * Creates a thread that must live as long as the mount: work that throws is restarted after a
   * growing pause. {@link Troubles} reports it meanwhile.
   *
   * @param work returns when it is done or the thread was interrupted
   */
  public static Thread lasting(String name, Runnable work) {
    return make(name, () -> runForLong(name, work));
  }

  /**
   * Like {@link #lasting}, for work that is done again and again.
   *
   * @param interval between the end of the work and its next begin
   * @param work is repeated until the thread is interrupted
   */
  public static Thread repeating(String name, Duration interval, Runnable work) {
    return lasting(
        name,
        () -> {
          try {
            while (true) {
              work.run();
              Thread.sleep(interval.toMillis());
            }
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
          }
        });
  }

  private static void runForLong(String name, Runnable work) {
    long pause = FIRST_PAUSE_MILLIS;
    while (true) {
      long begin = System.nanoTime();
      try {
        work.run();
        return;
      } catch (RuntimeException | Error e) {
        pause = System.nanoTime() - begin > WELL_NANOS ? FIRST_PAUSE_MILLIS : pause;
        addTrouble(name, e);
        report(name, "restarts", e);
      }
      try {
        Thread.sleep(pause);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        return;
      }
      pause = Math.min(LONGEST_PAUSE_MILLIS, 2 * pause);
    }
  }

  private static void addTrouble(String name, Throwable why) {
    try {
      Troubles.add(name, why);
    } catch (RuntimeException | Error e) {
      // No memory: the log line may have been written.
    }
  }

  /** Creates threads for a pool, numbered from 1. */
  public static ThreadFactory numbered(String name) {
    AtomicInteger count = new AtomicInteger();
    return work -> of(name + "-" + count.incrementAndGet(), work);
  }
}
