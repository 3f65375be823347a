package io.pmfs.fs;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * Directories that some threads found and any of them may walk, the last found first. When there
 * are many already, whoever finds one walks it itself.
 */
final class SharedDirectories {
  static final long NONE = 0;
  private static final int LIMIT = 4096;

  private final Deque<Long> directories = new ArrayDeque<>(); // GUARDED_BY(this)
  private int busy; // GUARDED_BY(this)
  private boolean stopped; // GUARDED_BY(this)

  /** For so many threads, all of which are busy and will {@link #take} until there is none. */
  SharedDirectories(int threads) {
    busy = threads;
  }

  /** Leaves a directory to whoever comes first; false if the caller is to walk it. */
  synchronized boolean offer(long directory) {
    if (directories.size() >= LIMIT) {
      return false;
    }
    directories.push(directory);
    notifyAll();
    return true;
  }

  /** The next for a thread that has nothing to do; waits for one while another may find some. */
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

  /** Nobody gets any more. */
  synchronized void stop() {
    stopped = true;
    notifyAll();
  }
}
