package io.pmfs.writable;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Which thread serves which request of the kernel, so that a request whose program got a signal
 * ends while it waits. Safe for use by many threads.
 */
public final class Interrupts {
  /** What a file system has whose requests can be interrupted. */
  public interface Holder {
    Interrupts interrupts();
  }

  private final Map<Long, Thread> serving = new ConcurrentHashMap<>();
  private final Set<Thread> interrupted = ConcurrentHashMap.newKeySet();

  /** The calling thread serves a request from now on. */
  public void begin(long unique) {
    serving.put(unique, Thread.currentThread());
  }

  /** The request was answered. */
  public void end(long unique) {
    serving.remove(unique);
    if (!interrupted.isEmpty()) {
      interrupted.remove(Thread.currentThread());
    }
  }

  /** The program no longer wants the answer to a request. */
  public void interrupt(long unique) {
    serving.computeIfPresent(
        unique,
        (key, thread) -> {
          interrupted.add(thread);
          return thread;
        });
  }

  /**
   * For a request that waits.
   *
   * @throws FsException with EINTR if the calling thread's request was interrupted
   */
  public void check(String what) throws FsException {
    if (!interrupted.isEmpty() && interrupted.contains(Thread.currentThread())) {
      throw new FsException(Errno.EINTR, what);
    }
  }
}
