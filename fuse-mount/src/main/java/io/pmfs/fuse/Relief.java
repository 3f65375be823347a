package io.pmfs.fuse;

import io.pmfs.posix.DaemonThread;
import java.util.concurrent.Semaphore;

/**
 * Adds workers while those that are there wait: for room in a tier, for the source or for another
 * node. So some are left for requests that need not wait. Safe for use by many threads.
 */
final class Relief {
  /** Workers that no waiting request is to occupy. */
  static final int KEPT = 8;

  /** A request that takes longer than this waits. Workers that are only busy are enough. */
  static final long WAITING_MILLIS = 50;

  private final Crew crew;
  private final Semaphore calls = new Semaphore(0);

  /** The workers of a session. */
  interface Crew {
    /** Whether requests are fetched at all. */
    boolean isServing();

    /** Whether a worker has no request. */
    boolean hasIdle();

    /** How many workers have no request, or one that does not wait. */
    int notWaiting();

    /** Adds one; returns false if there are as many as there may be. */
    boolean add();
  }

  Relief(Crew crew) {
    this.crew = crew;
  }

  /** No worker is free, or the session has ended. */
  void call() {
    calls.release();
  }

  /**
   * Begins to work, until the session has ended.
   *
   * @throws OutOfMemoryError if there is no thread for it
   */
  void start() {
    DaemonThread.lasting("fuse-relief", this::run).start();
  }

  void run() {
    call(); // An error may have ended a look that was called for.
    try {
      while (crew.isServing()) {
        calls.acquire();
        Thread.sleep(WAITING_MILLIS);
        calls.drainPermits();
        relieve();
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private void relieve() {
    int missing = KEPT - crew.notWaiting();
    while (missing > 0 && crew.isServing() && crew.add()) {
      missing--;
    }
    if (!crew.hasIdle()) {
      calls.release(); // The others may wait soon.
    }
  }
}
