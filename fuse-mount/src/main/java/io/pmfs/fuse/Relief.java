package io.pmfs.fuse;

import io.pmfs.posix.DaemonThread;
import java.util.concurrent.Semaphore;

/**
 * Adds workers while the existing ones wait (for room in a tier, the source or another node), so
 * that requests that need not wait find a worker. Thread-safe.
 */
final class Relief {
  /** Workers kept free of waiting requests. */
  static final int KEPT = 8;

  /**
   * A request that takes longer than this is waiting. Workers that are merely busy need no relief.
   */
  static final long WAITING_MILLIS = 50;

  private final Crew crew;
  private final Semaphore calls = new Semaphore(0);

  /** The workers of a session. */
  interface Crew {
    boolean isServing();

    boolean hasIdle();

    /** How many workers are idle, or have a request that is not waiting. */
    int notWaiting();

    /** Adds a worker; false if the limit is reached. */
    boolean add();
  }

  Relief(Crew crew) {
    this.crew = crew;
  }

  /** Called when no worker is free, or the session has ended. */
  void call() {
    calls.release();
  }

  /**
   * Starts the thread that adds workers until the session ends.
   *
   * @throws OutOfMemoryError if the thread cannot be started
   */
  void start() {
    DaemonThread.lasting("fuse-relief", this::run).start();
  }

  void run() {
    call(); // an error may have ended the check after a call
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
      calls.release(); // others may wait soon
    }
  }
}
