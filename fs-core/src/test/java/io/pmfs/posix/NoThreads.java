package io.pmfs.posix;

import java.util.concurrent.atomic.AtomicInteger;

/** While open, threads with certain names cannot be started, as when a limit is reached. */
public final class NoThreads implements AutoCloseable {
  private final String names;
  private final AtomicInteger left;
  private final AtomicInteger refused = new AtomicInteger();

  private NoThreads(String names, int left) {
    this.names = names;
    this.left = new AtomicInteger(left);
  }

  /**
   * Prevents all such threads from now on.
   *
   * @param names the prefix of their names
   */
  public static NoThreads named(String names) {
    return after(0, names);
  }

  /** Like {@link #named}, except for the first ones. */
  public static NoThreads after(int first, String names) {
    NoThreads none = new NoThreads(names, first);
    DaemonThread.starter = none::start;
    return none;
  }

  private void start(Thread thread) {
    if (thread.getName().startsWith(names) && left.getAndDecrement() <= 0) {
      refused.incrementAndGet();
      throw new OutOfMemoryError("unable to create native thread");
    }
    thread.start();
  }

  /** How many were not started. */
  public int refused() {
    return refused.get();
  }

  @Override
  public void close() {
    DaemonThread.starter = Thread::start;
  }
}
