package io.pmfs.cache;

import io.pmfs.tier.DaemonThread;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The threads that make copies, or compare them. The next file is that of the user with the fewest
 * bytes under way. Safe for use by many threads.
 */
final class Copier implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(Copier.class);

  /** As many as the workers of a mount: each reader of a file that is copied waits for one. */
  static final int THREADS = 64;

  /** A source that hangs stops these threads at most, for each user. */
  private static final int OF_ONE_USER = THREADS * 3 / 4;

  /** Each file that waits is open. */
  private static final int WAITING_OF_ONE_USER = 256;

  private static final int WAITING = 4096;

  /** Larger writes cost three times the processor time on ext4 (docs/decisions/0020). */
  private static final int BLOCK_BYTES = 256 << 10;

  private final Map<Integer, Queue> queues = new LinkedHashMap<>(); // GUARDED_BY(this)
  private int idle; // GUARDED_BY(this)
  private int waiting; // GUARDED_BY(this)
  private int running; // GUARDED_BY(this)
  private boolean closed; // GUARDED_BY(this)

  /** The files of one user. */
  private static final class Queue {
    private final Deque<Work> waiting = new ArrayDeque<>();
    private int running;
    private long bytes;
  }

  /** Makes or compares one copy. */
  interface Work {
    /** Does it; reports the bytes that are done to the progress. */
    void run(ByteBuffer buffer, Progress progress);

    /** Is called instead if nothing is done any more. */
    void drop();

    long bytes();
  }

  /** Counts the bytes of one work. */
  interface Progress {
    void done(long bytes);
  }

  /** What becomes of work. */
  enum Place {
    /** A thread is free for it. */
    AT_ONCE,
    WAITS,
    /** Too much waits already. */
    REFUSED
  }

  /**
   * Starts its threads.
   *
   * @param first what each of them does at its beginning
   */
  Copier(String name, int threads, Runnable first) {
    for (int i = 1; i <= threads; i++) {
      DaemonThread.start(
          name + "-" + i,
          () -> {
            first.run();
            work();
          });
    }
  }

  /** Adds work, unless it is refused. */
  synchronized Place add(int user, Work work) {
    Queue queue = queues.computeIfAbsent(user, uid -> new Queue());
    if (closed || queue.waiting.size() >= WAITING_OF_ONE_USER || waiting >= WAITING) {
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
    while (true) {
      Queue queue;
      Work work;
      synchronized (this) {
        queue = next();
        if (queue == null) {
          return;
        }
        work = queue.waiting.remove();
        waiting--;
        running++;
        queue.running++;
        queue.bytes += work.bytes();
      }
      long[] left = {work.bytes()};
      Queue its = queue;
      try {
        work.run(
            buffer,
            bytes -> {
              left[0] -= bytes;
              count(its, bytes);
            });
      } catch (RuntimeException e) {
        log.error("copying", e);
        work.drop();
      }
      count(queue, left[0]);
      synchronized (this) {
        running--;
        queue.running--;
        notifyAll();
      }
    }
  }

  private synchronized void count(Queue queue, long bytes) {
    queue.bytes -= bytes;
  }

  /** Waits for work; called with the lock held. Null at the end. */
  private @Nullable Queue next() {
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
          return least;
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

  synchronized int running() {
    return running;
  }

  synchronized int waiting() {
    return waiting;
  }

  /** Takes no more work. Does not wait for a source that hangs. */
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
