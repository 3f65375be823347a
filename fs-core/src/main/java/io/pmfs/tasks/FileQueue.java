package io.pmfs.tasks;

import java.util.ArrayDeque;
import java.util.Queue;
import java.util.function.BooleanSupplier;
import java.util.function.LongConsumer;

/**
 * A queue, in order, between the walk that finds files and the threads that work on them. {@link
 * #put} blocks while it is full; taking waits only briefly, because there may be other work.
 */
final class FileQueue {
  private static final long NOTHING_NOW = 0;
  private static final long NOTHING_MORE = -1;
  private static final int LIMIT = 1024;
  private static final long PATIENCE_MS = 20;

  private final Queue<Long> files = new ArrayDeque<>(); // GUARDED_BY(this)
  private boolean closed; // GUARDED_BY(this)
  private boolean stopped; // GUARDED_BY(this)
  private int taken; // GUARDED_BY(this)

  synchronized void put(long number) throws InterruptedException {
    while (files.size() >= LIMIT && !stopped) {
      wait();
    }
    if (!stopped) {
      files.add(number);
      notifyAll();
    }
  }

  /** Declares that no more files will be put. */
  synchronized void close() {
    closed = true;
    notifyAll();
  }

  /** Stops the queue: no more files are taken, and every waiting thread returns. */
  synchronized void stop() {
    stopped = true;
    notifyAll();
  }

  /**
   * Works on files until there are no more.
   *
   * @param otherWork does a small piece of other work while the queue is empty; false if there is
   *     none
   */
  void serve(LongConsumer work, BooleanSupplier otherWork) throws InterruptedException {
    boolean patient = false;
    for (long number; (number = take(patient)) != NOTHING_MORE; ) {
      if (number == NOTHING_NOW) {
        patient = !otherWork.getAsBoolean();
        continue;
      }
      try {
        work.accept(number);
      } finally {
        done();
      }
    }
  }

  /**
   * The queue ends only when every taken file is done: until then waiting threads may help with it.
   */
  private synchronized long take(boolean patient) throws InterruptedException {
    for (boolean waits = patient; waits && files.isEmpty() && !isOver(); waits = false) {
      wait(PATIENCE_MS);
    }
    if (isOver()) {
      return NOTHING_MORE;
    }
    Long number = files.poll();
    if (number == null) {
      return NOTHING_NOW;
    }
    taken++;
    notifyAll();
    return number;
  }

  private synchronized boolean isOver() {
    return stopped || (closed && files.isEmpty() && taken == 0);
  }

  private synchronized void done() {
    taken--;
    if (isOver()) {
      notifyAll();
    }
  }
}
