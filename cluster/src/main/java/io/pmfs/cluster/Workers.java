package io.pmfs.cluster;

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
 * Threads that answer requests. So many work at a time; one that {@link #await waits} for its peer
 * to take an answer does not count, so that slow peers keep nobody else waiting. Safe for use by
 * many threads.
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

  /** One of the threads. */
  private static final class Worker extends Thread {
    private final Workers workers;

    Worker(Workers workers, Runnable work) {
      super(work);
      this.workers = workers;
    }
  }

  /**
   * @param most that work at a time
   * @param mostQueued that wait for one of these; more are refused
   * @param mostWaiting workers that wait for peers without counting; each has its memory
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
    // There are as many as work and wait, which are counted here.
    threads =
        new ThreadPoolExecutor(
            0, Integer.MAX_VALUE, IDLE_SECONDS, TimeUnit.SECONDS, new SynchronousQueue<>(), named);
  }

  /** Has a thread do it, now or when one is free. */
  @Override
  public void execute(Runnable task) {
    synchronized (this) {
      if (closed) {
        throw new RejectedExecutionException("closed");
      }
      if (working >= most) {
        if (queue.size() >= mostQueued) {
          throw new RejectedExecutionException(most + " are busy");
        }
        queue.add(task);
        return;
      }
      working++;
    }
    if (!start(task)) {
      throw new RejectedExecutionException("there is no thread for it");
    }
  }

  /** Says whether there is a thread for it; if not, the place is free again. */
  private boolean start(Runnable task) {
    try {
      run(task);
      return true;
    } catch (RejectedExecutionException | OutOfMemoryError e) {
      log.warn("no thread answers a peer: {}", e.toString());
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
              log.error("answering a peer", e);
            }
          }
        });
  }

  /** For a thread that has done its task; without one it ends. */
  private synchronized @Nullable Runnable next() {
    // After waits there may be more than there should.
    Runnable task = working > most ? null : queue.poll();
    if (task == null) {
      working--;
    }
    return task;
  }

  /**
   * Runs something that waits for a peer. A worker that calls it does not count meanwhile, so
   * another one may take its place.
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

  /** Says whether there was room for one more that waits. */
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

  /** Goes on at once: what it has begun is not to wait for those that came later. */
  private synchronized void comeBack() {
    waiting--;
    working++;
  }

  /** Takes no more, and drops what waits for a thread. */
  synchronized void close() {
    closed = true;
    queue.clear();
    threads.shutdown();
  }

  /** Says whether all had ended in time. */
  boolean awaitEnd(long seconds) throws InterruptedException {
    return threads.awaitTermination(seconds, TimeUnit.SECONDS);
  }
}
