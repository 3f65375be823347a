package io.pmfs.posix;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Daemon threads that do what they are given, in its order. The first is started at once; if later
 * ones cannot be had, those that there are do all. Nothing that is thrown ends one of them.
 */
public final class DaemonPool extends ThreadPoolExecutor {
  /**
   * Starts the first thread.
   *
   * @throws OutOfMemoryError if it cannot be started
   */
  public DaemonPool(int most, String name) {
    this(most, DaemonThread.numbered(name));
  }

  /** The same with other threads. */
  public DaemonPool(int most, ThreadFactory factory) {
    super(most, most, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), factory);
    prestartCoreThread();
  }

  /**
   * Gives the threads something to do.
   *
   * @throws RejectedExecutionException after the pool was shut down
   */
  @Override
  public void execute(Runnable task) {
    Runnable guarded = () -> run(task);
    try {
      super.execute(guarded);
    } catch (OutOfMemoryError e) {
      // No other thread can be started; the first one is there until the end.
      if (isShutdown()) {
        throw new RejectedExecutionException("shut down", e);
      }
      getQueue().add(guarded);
    }
  }

  private static void run(Runnable task) {
    try {
      task.run();
    } catch (RuntimeException | Error e) {
      DaemonThread.tell(Thread.currentThread().getName(), "goes on", e);
    }
  }
}
