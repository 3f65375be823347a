package io.pmfs.cluster.server;

import io.netty.util.concurrent.DefaultThreadFactory;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Threads that answer requests. A limited number works at a time; a thread that {@link #await
 * waits} for its peer to take an answer does not count, so that other peers do not wait for slow
 * ones. Thread-safe.
 */
final class Workers implements Executor {
  private static final Logger log = LoggerFactory.getLogger(Workers.class);
  private static final int IDLE_SECONDS = 30;

  private final int most;
  private final int mostQueued;
  private final int mostWaiting;
  private final ThreadPoolExecutor threads;
  private final Deque<Runnable> queue = new ArrayDeque<>(); // GUARDED_BY(this)
  private int working; // GUARDED_BY(this)
  private int waiting; // GUARDED_BY(this)
  private boolean closed; // GUARDED_BY(this)

  private static final class Worker extends Thread {
    private final Workers workers;

    Worker(Workers workers, Runnable work) {
      super(work);
      this.workers = workers;
    }
  }

  /**
   * @param most limit of working threads
   * @param mostQueued limit of tasks that wait for a thread; further ones are refused
   * @param mostWaiting limit of threads that wait for peers without counting; each holds memory
   */
  Workers(String name, int most, int mostQueued, int mostWaiting) {
    this.most = most;
    this.mostQueued = mostQueued;
    this.mostWaiting = mostWaiting;
    ThreadFactory named =
        new DefaultThreadFactory(name, true) {
          @Override
          protected Thread newThread(Runnable work, String threadName) {
            Thread thread = new Worker(Workers.this, work);
            thread.setName(threadName);
            return thread;
          }
        };
    // The threads that work and those that wait are counted here, so the pool needs no limit.
    threads =
        new ThreadPoolExecutor(
            0, Integer.MAX_VALUE, IDLE_SECONDS, TimeUnit.SECONDS, new SynchronousQueue<>(), named);
  }

  /** Runs a task on a thread, now or when one is free. */
  @Override
  public void execute(Runnable task) {
    synchronized (this) {
      if (closed) {
        throw new RejectedExecutionException("closed");
      }
      if (working >= most) {
        if (queue.size() >= mostQueued) {
          throw new RejectedExecutionException("all " + most + " workers are busy");
        }
        queue.add(task);
        return;
      }
      working++;
    }
    if (!start(task)) {
      throw new RejectedExecutionException("cannot start a thread for the task");
    }
  }

  /** Starts a thread for a task; returns false, and frees its place, if that fails. */
  private boolean start(Runnable task) {
    try {
      run(task);
      return true;
    } catch (RejectedExecutionException | OutOfMemoryError e) {
      log.warn("cannot start a thread to answer a peer: {}", e.toString());
      synchronized (this) {
        working--;
      }
      return false;
    }
  }

  private void run(Runnable first) {
    threads.execute(
        () -> {
          for (Runnable task = first; task != null; task = next()) {
            try {
              task.run();
            } catch (RuntimeException | Error e) {
              log.error("cannot answer a peer", e);
            }
          }
        });
  }

  /** The next task for a thread that has finished one; null if the thread must end. */
  private synchronized @Nullable Runnable next() {
    // Threads that come back from a wait may exceed the limit.
    Runnable task = working > most ? null : queue.poll();
    if (task == null) {
      working--;
    }
    return task;
  }

  /**
   * Runs something that waits for a peer. The calling worker does not count meanwhile, so another
   * one may take its place.
   */
  static void await(Runnable wait) {
    if (Thread.currentThread() instanceof Worker worker && worker.workers.leave()) {
      try {
        wait.run();
      } finally {
        worker.workers.comeBack();
      }
    } else {
      wait.run();
    }
  }

  private boolean leave() {
    Runnable task;
    synchronized (this) {
      if (waiting >= mostWaiting) {
        return false;
      }
      waiting++;
      task = next();
    }
    if (task != null && !start(task)) {
      synchronized (this) {
        queue.addFirst(task);
      }
    }
    return true;
  }

  /** Continues at once: a task that has started must not wait for later ones. */
  private synchronized void comeBack() {
    waiting--;
    working++;
  }

  /** Refuses further tasks, and drops the queued ones. */
  synchronized void close() {
    closed = true;
    queue.clear();
    threads.shutdown();
  }

  /** Returns whether all threads ended in time. */
  boolean awaitEnd(long seconds) throws InterruptedException {
    return threads.awaitTermination(seconds, TimeUnit.SECONDS);
  }
}
