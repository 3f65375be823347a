package io.pmfs.posix;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Daemon threads that run tasks in order. The first is started at once; if no more can be started,
 * the existing ones run all tasks. No exception ends a thread.
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

  /** Starts the first thread, made by the factory. */
  public DaemonPool(int most, ThreadFactory factory) {
    super(most, most, 0, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), factory);
    prestartCoreThread();
  }

  /**
   * Queues a task.
   *
   * @throws RejectedExecutionException after the pool was shut down
   */
  @Override
  public void execute(Runnable task) {
    Runnable guarded = () -> run(task);
    try {
      super.execute(guarded);
    } catch (OutOfMemoryError e) {
      // No more threads can be started; the first one lives until shutdown.
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
      DaemonThread.report(Thread.currentThread().getName(), "continues", e);
    }
  }
}
