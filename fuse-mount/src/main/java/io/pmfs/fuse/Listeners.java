package io.pmfs.fuse;

import java.util.ArrayDeque;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * Limits how many idle workers wait for a request; the others sleep. The kernel passes requests to
 * waiting threads in turn, so with many of them each request would reach a thread with cold caches.
 * The last worker to sleep is the first to be woken.
 *
 * <p>At least {@link #LEAST} workers wait unless all others are busy: a worker that takes a request
 * wakes another one if too few are left. So a slow request never delays the next one.
 */
final class Listeners {
  /** One worker waits while another one, which has just taken a request, wakes a third. */
  static final int LEAST = 1;

  /** More than {@link #LEAST}, so that one reader more or less neither wakes nor parks a worker. */
  static final int MOST = 4;

  private final AtomicInteger listening = new AtomicInteger();
  private final ArrayDeque<Sleeper> sleepers = new ArrayDeque<>();
  private volatile boolean unlimited;
  private volatile Runnable noneLeft = () -> {};

  private static final class Sleeper {
    private final Thread thread = Thread.currentThread();
    private volatile boolean woken;
  }

  /** Call before waiting for a request; sleeps while enough others wait. */
  void begin() {
    while (true) {
      int now = listening.get();
      if (now < MOST || unlimited) {
        if (listening.compareAndSet(now, now + 1)) {
          return;
        }
      } else {
        sleep();
      }
    }
  }

  /** Runs an action whenever a request is taken and no worker is left for the next one. */
  void whenNoneIsLeft(Runnable then) {
    noneLeft = then;
  }

  /** Call once a request is taken. */
  void end() {
    if (listening.decrementAndGet() < LEAST && !wakeOne()) {
      noneLeft.run();
    }
  }

  /** Lets all workers wait, and wakes those that sleep. */
  void disband() {
    unlimited = true;
    while (wakeOne()) {}
  }

  private void sleep() {
    Sleeper self = new Sleeper();
    synchronized (sleepers) {
      sleepers.push(self);
      // Check again: a worker that took a request before this one went to sleep found none to wake.
      if (listening.get() < MOST || unlimited) {
        sleepers.pop();
        return;
      }
    }
    while (!self.woken) {
      LockSupport.park(this);
    }
  }

  private boolean wakeOne() {
    Sleeper sleeper;
    synchronized (sleepers) {
      sleeper = sleepers.poll();
    }
    if (sleeper == null) {
      return false;
    }
    sleeper.woken = true;
    LockSupport.unpark(sleeper.thread);
    return true;
  }
}
