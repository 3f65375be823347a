package io.pmfs.tier;

import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;

/** Makes threads that do not keep the process alive. */
public final class DaemonThread {
  private DaemonThread() {}

  public static Thread of(String name, Runnable work) {
    Thread thread = new Thread(work, name);
    thread.setDaemon(true);
    return thread;
  }

  public static void start(String name, Runnable work) {
    of(name, work).start();
  }

  /** For the threads of a pool, whose names end with numbers from 1. */
  public static ThreadFactory numbered(String name) {
    AtomicInteger count = new AtomicInteger();
    return work -> of(name + "-" + count.incrementAndGet(), work);
  }
}
