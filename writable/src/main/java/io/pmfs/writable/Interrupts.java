package io.pmfs.writable;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The thread that serves each kernel request, so that a signal to a program interrupts its waiting
 * request. Thread-safe.
 */
public final class Interrupts {
  /** A file system whose requests can be interrupted. */
  public interface Holder {
    Interrupts interrupts();
  }

  private final Map<Long, Thread> serving = new ConcurrentHashMap<>();
  private final Set<Thread> interrupted = ConcurrentHashMap.newKeySet();

  /** Registers the calling thread as the one that serves a request. */
  public void begin(long unique) {
    serving.put(unique, Thread.currentThread());
  }

  /** Ends a request: it was answered. */
  public void end(long unique) {
    serving.remove(unique);
    if (!interrupted.isEmpty()) {
      interrupted.remove(Thread.currentThread());
    }
  }

  public void interrupt(long unique) {
    serving.computeIfPresent(
        unique,
        (key, thread) -> {
          interrupted.add(thread);
          return thread;
        });
  }

  /**
   * Called by a request before and while it waits.
   *
   * @throws FsException with EINTR if the calling thread's request was interrupted
   */
  public void check(String what) throws FsException {
    if (!interrupted.isEmpty() && interrupted.contains(Thread.currentThread())) {
      throw new FsException(Errno.EINTR, what);
    }
  }
}
