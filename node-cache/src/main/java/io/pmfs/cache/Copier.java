package io.pmfs.cache;

import io.pmfs.posix.DaemonThread;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Threads that make and verify copies. The user with the fewest bytes in progress is served next.
 * Thread-safe.
 */
final class Copier implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Copier.class);

  /** As many as a mount's workers, each of which may wait for a copy. */
  static final int THREADS = 64;

  /** How many threads one user can occupy, so that a hanging source does not block all. */
  private static final int OF_ONE_USER = THREADS * 3 / 4;

  /** The most threads started in place of hanging ones. */
  private static final int MOST_REPLACED = 4 * THREADS;

  /** Limited because each queued file is open. */
  private static final int WAITING_OF_ONE_USER = 256;

  private static final int WAITING = 4096;

  /** Larger writes cost three times the processor time on ext4 (docs/decisions/0020). */
  private static final int BLOCK_BYTES = 256 << 10;

  private final Map<Integer, Queue> queues = new LinkedHashMap<>(); // GUARDED_BY(this)
  private int idle; // GUARDED_BY(this)
  private int waiting; // GUARDED_BY(this)
  private boolean closed; // GUARDED_BY(this)
  private final Set<Run> runs = new HashSet<>(); // GUARDED_BY(this)
  private int replaced; // GUARDED_BY(this)

  /** The files of one user. */
  private static final class Queue {
    private final Deque<Work> waiting = new ArrayDeque<>();
    private int running;
    private int hanging;
    private long bytes;
  }

  /** Work in progress. */
  private static final class Run {
    private final Queue queue;
    private final Work work;
    private long left;
    private long progressed = System.nanoTime();
    private boolean hangs;

    Run(Queue queue, Work work) {
      this.queue = queue;
      this.work = work;
      this.left = work.bytes();
    }
  }

  /** Makes or compares one copy. */
  interface Work {
    /** Does it; reports the bytes that are done to the progress. */
    void run(ByteBuffer buffer, LongConsumer progress);

    /** Called instead of {@link #run} if the work will not be done. */
    void drop();

    /** Called when the work hangs and its thread has been replaced; it may still continue. */
    default void giveUp() {}

    long bytes();
  }

  /** What becomes of work. */
  enum Place {
    AT_ONCE,
    WAITS,
    REFUSED
  }

  Copier(int threads) {
    for (int i = 1; i <= threads; i++) {
      DaemonThread.lasting("copy-" + i, this::work).start();
    }
  }

  /** Queues work. */
  synchronized Place add(int user, Work work) {
    Queue queue = queues.computeIfAbsent(user, uid -> new Queue());
    if (closed
        || queue.hanging >= OF_ONE_USER
        || queue.waiting.size() >= WAITING_OF_ONE_USER
        || waiting >= WAITING) {
      return Place.REFUSED;
    }
    boolean isAtOnce = idle > waiting && queue.running + queue.waiting.size() < OF_ONE_USER;
    queue.waiting.add(work);
    waiting++;
    notifyAll();
    return isAtOnce ? Place.AT_ONCE : Place.WAITS;
  }

  private void work() {
    ByteBuffer buffer = ByteBuffer.allocateDirect(BLOCK_BYTES);
    Run run;
    do {
      run = next();
    } while (run != null && isDone(run, buffer));
  }

  /** Does the work; returns whether this thread continues because it was not replaced. */
  private boolean isDone(Run run, ByteBuffer buffer) {
    try {
      workAt(run, buffer);
    } finally {
      end(run);
    }
    return !run.hangs;
  }

  private void workAt(Run run, ByteBuffer buffer) {
    try {
      run.work.run(buffer, bytes -> progressed(run, bytes));
    } catch (RuntimeException | Error e) {
      log.error("copying", e);
      run.work.drop();
    }
  }

  private void end(Run run) {
    synchronized (this) {
      runs.remove(run);
      run.queue.bytes -= run.left;
      run.queue.running--;
      queues.values().removeIf(queue -> queue.running == 0 && queue.waiting.isEmpty());
      if (run.hangs) {
        run.queue.hanging--;
        replaced--;
      }
      notifyAll();
    }
  }

  private synchronized void progressed(Run run, long bytes) {
    run.left -= bytes;
    run.queue.bytes -= bytes;
    run.progressed = System.nanoTime();
  }

  /** Waits for work; null once closed. */
  private synchronized @Nullable Run next() {
    idle++;
    try {
      while (!closed) {
        Queue least = null;
        for (Queue queue : queues.values()) {
          boolean mayRun = !queue.waiting.isEmpty() && queue.running < OF_ONE_USER;
          if (mayRun && (least == null || queue.bytes < least.bytes)) {
            least = queue;
          }
        }
        if (least != null) {
          return begun(least);
        }
        wait();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      idle--;
    }
    return null;
  }

  private Run begun(Queue queue) { // GUARDED_BY(this)
    Run run = new Run(queue, queue.waiting.remove());
    waiting--;
    queue.running++;
    queue.bytes += run.left;
    runs.add(run);
    return run;
  }

  /**
   * Replaces threads that have made no progress since a time, so that one user's source cannot
   * block the others. If all of a user's threads hang, drops the user's queue.
   */
  void replaceHanging(long sinceNanoTime) {
    List<Run> hanging = new ArrayList<>();
    List<Work> dropped = new ArrayList<>();
    synchronized (this) {
      for (Run run : runs) {
        if (!run.hangs && run.progressed - sinceNanoTime < 0 && replaced < MOST_REPLACED) {
          run.hangs = true;
          run.queue.hanging++;
          replaced++;
          hanging.add(run);
          if (run.queue.hanging >= OF_ONE_USER) {
            dropped.addAll(run.queue.waiting);
            waiting -= run.queue.waiting.size();
            run.queue.waiting.clear();
          }
        }
      }
    }
    hanging.forEach(this::replace);
    dropped.forEach(Work::drop);
  }

  private void replace(Run run) {
    try {
      DaemonThread.lasting(
              "copy-in-place",
              () -> {
                run.work.giveUp();
                work();
              })
          .start();
    } catch (OutOfMemoryError e) {
      log.warn("cannot replace a hanging thread yet: {}", e.toString());
      synchronized (this) {
        if (runs.contains(run)) {
          run.hangs = false;
          run.queue.hanging--;
          replaced--;
        }
      }
    }
  }

  synchronized int running() {
    return runs.size();
  }

  synchronized int waiting() {
    return waiting;
  }

  /** Accepts no more work. Does not wait for a hanging source. */
  @Override
  public void close() {
    Deque<Work> left = new ArrayDeque<>();
    synchronized (this) {
      closed = true;
      queues.values().forEach(queue -> left.addAll(queue.waiting));
      queues.clear();
      waiting = 0;
      notifyAll();
    }
    left.forEach(Work::drop);
  }
}
