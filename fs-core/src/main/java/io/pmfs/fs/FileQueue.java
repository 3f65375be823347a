package io.pmfs.fs;

import java.util.ArrayDeque;
import java.util.Queue;

/**
 * Files between the walk that finds them and the threads that work on them, in order. Who puts one
 * waits while it is full; who takes one does not wait for long, for there may be other work.
 */
final class FileQueue {
  /** What {@link #take} answers when there is nothing at the moment, or will be nothing again. */
  static final long NOTHING_NOW = 0;

  static final long NOTHING_MORE = -1;

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
    files.add(number);
    notifyAll();
  }

  /** No more will be put. */
  synchronized void close() {
    closed = true;
    notifyAll();
  }

  /** Nothing will be taken any more, and nobody waits. */
  synchronized void stop() {
    stopped = true;
    notifyAll();
  }

  /**
   * The next file, which is the caller's until {@link #done}. There is nothing more only when those
   * that were taken are done: who waits may help with them.
   */
  synchronized long take(boolean patient) throws InterruptedException {
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

  synchronized void done() {
    taken--;
    if (isOver()) {
      notifyAll();
    }
  }
}
