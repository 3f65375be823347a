package io.pmfs.writable;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.util.ArrayDeque;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;

/**
 * The thread that serves each kernel request, so that a signal to a program interrupts its waiting
 * request. Thread-safe.
 */
public final class Interrupts {
  /** A file system whose requests can be interrupted. */
  public interface Holder {
    Interrupts interrupts();
  }

  /** How many early interrupts are remembered: most of them are late, for an answered request. */
  private static final int MOST_EARLY = 1024;

  private final Map<Long, Thread> serving = new ConcurrentHashMap<>();
  private final Set<Thread> interrupted = ConcurrentHashMap.newKeySet();

  /** Interrupts of requests that no thread serves yet: another thread read them and is to begin. */
  private final Set<Long> early = ConcurrentHashMap.newKeySet();

  private final Queue<Long> earlyInOrder = new ArrayDeque<>();
  private final Consumer<Thread> passOn;

  /** Of requests that check for themselves while they wait. */
  public Interrupts() {
    this(thread -> {});
  }

  /**
   * Of requests that also wait elsewhere.
   *
   * @param passOn called with the thread whose request was interrupted; must not wait
   */
  public Interrupts(Consumer<Thread> passOn) {
    this.passOn = passOn;
  }

  /** Registers the calling thread as the one that serves a request; numbers are not reused. */
  public void begin(long unique) {
    serving.put(unique, Thread.currentThread());
    if (early.contains(unique)) {
      interrupt(unique);
    }
  }

  /** Ends a request: it was answered. */
  public void end(long unique) {
    serving.remove(unique);
    if (!interrupted.isEmpty()) {
      interrupted.remove(Thread.currentThread());
    }
  }

  /** Interrupts a request, or later its begin: the kernel says it only once. */
  public synchronized void interrupt(long unique) {
    if (early.add(unique)) { // Before the look: a request that begins looks in the other order.
      earlyInOrder.add(unique);
    }
    Thread server =
        serving.computeIfPresent(
            unique,
            (key, thread) -> {
              interrupted.add(thread);
              passOn.accept(thread);
              return thread;
            });
    if (server != null) {
      early.remove(unique);
    }
    if (earlyInOrder.size() > MOST_EARLY) {
      early.remove(earlyInOrder.remove());
    }
  }

  /** Whether the calling thread's request was interrupted. */
  public boolean isInterrupted() {
    return !interrupted.isEmpty() && interrupted.contains(Thread.currentThread());
  }

  /**
   * Called by a request before and while it waits.
   *
   * @throws FsException with EINTR if the calling thread's request was interrupted
   */
  public void check(String what) throws FsException {
    if (isInterrupted()) {
      throw new FsException(Errno.EINTR, what);
    }
  }
}
