package io.pmfs.tasks;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Directories waiting for any of several threads to walk them, last found first. When too many
 * wait, the thread that finds another walks it itself.
 */
final class SharedDirectories {
  static final long NONE = 0;
  private static final int LIMIT = 4096;

  private final Deque<Long> directories = new ArrayDeque<>(); // GUARDED_BY(this)
  private int busy; // GUARDED_BY(this)
  private boolean stopped; // GUARDED_BY(this)

  /**
   * For {@code threads} threads, all of which are busy and will call {@link #take} until it returns
   * {@link #NONE}.
   */
  SharedDirectories(int threads) {
    busy = threads;
  }

  /** Offers a directory to any thread; false if the caller must walk it. */
  synchronized boolean offer(long directory) {
    if (directories.size() >= LIMIT) {
      return false;
    }
    directories.push(directory);
    notifyAll();
    return true;
  }

  /** The next directory for an idle thread; waits while another thread may still find some. */
  synchronized long take() throws InterruptedException {
    busy--;
    while (directories.isEmpty() && busy > 0 && !stopped) {
      wait();
    }
    if (directories.isEmpty() || stopped) {
      notifyAll();
      return NONE;
    }
    busy++;
    return directories.pop();
  }

  /** Removes a thread that could not be started. */
  synchronized void leave() {
    busy--;
    notifyAll();
  }

  /** Ends all waiting; no thread gets another directory. */
  synchronized void stop() {
    stopped = true;
    notifyAll();
  }
}
