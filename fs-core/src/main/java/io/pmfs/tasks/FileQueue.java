package io.pmfs.tasks;

import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;
import java.util.function.LongConsumer;

/**
 * A queue, in order, between the walk that finds files and the threads that work on them. {@link
 * #put} blocks while it is full, until it is half empty; taking waits only briefly, because there
 * may be other work. A file wakes one thread.
 */
final class FileQueue {
  private static final long NOTHING_NOW = 0;
  private static final long NOTHING_MORE = -1;
  private static final int LIMIT = 1024;
  private static final long PATIENCE_MS = 20;

  private final ReentrantLock lock = new ReentrantLock();
  private final Condition hasFiles = lock.newCondition();
  private final Condition hasRoom = lock.newCondition();
  private final Queue<Long> files = new ArrayDeque<>(LIMIT); // GUARDED_BY(lock)
  private boolean closed; // GUARDED_BY(lock)
  private boolean stopped; // GUARDED_BY(lock)
  private int taken; // GUARDED_BY(lock)

  void put(long number) throws InterruptedException {
    lock.lock();
    try {
      while (files.size() >= LIMIT && !stopped) {
        hasRoom.await();
      }
      if (!stopped) {
        files.add(number);
        hasFiles.signal();
      }
    } finally {
      lock.unlock();
    }
  }

  /** Declares that no more files will be put. */
  void close() {
    lock.lock();
    try {
      closed = true;
      hasFiles.signalAll();
    } finally {
      lock.unlock();
    }
  }

  /** Stops the queue: no more files are taken, and every waiting thread returns. */
  void stop() {
    lock.lock();
    try {
      stopped = true;
      hasFiles.signalAll();
      hasRoom.signalAll();
    } finally {
      lock.unlock();
    }
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
  private long take(boolean patient) throws InterruptedException {
    lock.lock();
    try {
      for (boolean waits = patient; waits && files.isEmpty() && !isOver(); ) {
        waits = hasFiles.await(PATIENCE_MS, TimeUnit.MILLISECONDS);
      }
      if (isOver()) {
        return NOTHING_MORE;
      }
      Long number = files.poll();
      if (number == null) {
        return NOTHING_NOW;
      }
      taken++;
      if (files.size() == LIMIT / 2) {
        hasRoom.signalAll();
      }
      return number;
    } finally {
      lock.unlock();
    }
  }

  private void done() {
    lock.lock();
    try {
      taken--;
      if (isOver()) {
        hasFiles.signalAll();
      }
    } finally {
      lock.unlock();
    }
  }

  /** Called with the lock held. */
  private boolean isOver() {
    return stopped || (closed && files.isEmpty() && taken == 0);
  }
}
