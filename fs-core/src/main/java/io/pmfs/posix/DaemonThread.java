package io.pmfs.posix;

import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes threads that do not keep the process alive. Whatever is thrown in one, also an Error, ends
 * that thread at most, and is logged.
 */
public final class DaemonThread {
  private static final Logger log = LoggerFactory.getLogger(DaemonThread.class);

  private static final long FIRST_PAUSE_MILLIS = 100;
  private static final long LONGEST_PAUSE_MILLIS = 10_000;

  /** Work that went well for so long begins again as soon as the first time. */
  private static final long WELL_NANOS = TimeUnit.MINUTES.toNanos(1);

  /** Starts threads; tests have one that cannot. */
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
      tell(name, "ends", e);
    }
  }

  static void tell(String name, String what, Throwable why) {
    try {
      log.error("thread {} {}", name, what, why);
    } catch (RuntimeException | Error e) {
      // There may be no memory for a line either.
    }
  }

  /**
   * Starts a thread.
   *
   * @throws OutOfMemoryError if that is not possible now: whoever calls this does the work itself,
   *     or leaves it out and gives back what was taken for it
   */
  public static Thread start(String name, Runnable work) {
    Thread thread = of(name, work);
    starter.accept(thread);
    return thread;
  }

  /**
   * Makes a thread that has to live as long as the mount: if its work throws anything, it begins
   * again, after a pause that grows. {@link Troubles} has it meanwhile.
   *
   * @param work returns when it is over, or the thread was interrupted
   */
  public static Thread lasting(String name, Runnable work) {
    return make(name, () -> runForLong(name, work));
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
        tell(name, "begins again", e);
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
      // No memory: the log may have some.
    }
  }

  /** For the threads of a pool, whose names end with numbers from 1. */
  public static ThreadFactory numbered(String name) {
    AtomicInteger count = new AtomicInteger();
    return work -> of(name + "-" + count.incrementAndGet(), work);
  }
}
