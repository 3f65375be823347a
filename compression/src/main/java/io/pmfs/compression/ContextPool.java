package io.pmfs.compression;

import java.io.Closeable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Idle native contexts, at most one per processor. Thread-safe. */
final class ContextPool<T extends Closeable> implements AutoCloseable {
  private final Supplier<T> maker;
  private final int limit = Runtime.getRuntime().availableProcessors();
  private final Deque<T> idle = new ArrayDeque<>(limit); // GUARDED_BY(this)
  private final @Nullable Closeable shared;
  private int out; // GUARDED_BY(this)
  private boolean closed; // GUARDED_BY(this)

  /**
   * Creates contexts when none is idle.
   *
   * @param shared an object that the contexts share, if any; freed after the last of them
   */
  ContextPool(Supplier<T> maker, @Nullable Closeable shared) {
    this.maker = maker;
    this.shared = shared;
  }

  /** A context that the caller owns until returning it. */
  T take() {
    T context = poll();
    if (context != null) {
      return context;
    }
    try {
      return maker.get();
    } catch (RuntimeException | Error e) {
      countOut(-1);
      throw e;
    }
  }

  private synchronized @Nullable T poll() {
    if (closed) {
      throw new IllegalStateException("the codec is closed");
    }
    out++;
    return idle.pollLast();
  }

  void giveBack(T context) {
    if (!keep(context)) {
      free(context);
    }
    countOut(-1);
  }

  private synchronized void countOut(int change) {
    out += change;
    if (closed && out == 0 && shared != null) {
      free(shared);
    }
  }

  private synchronized boolean keep(T context) {
    return !closed && idle.size() < limit && idle.offerLast(context);
  }

  /** Contexts in use are freed when they are returned. */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    idle.forEach(ContextPool::free);
    idle.clear();
    countOut(0);
  }

  private static void free(Closeable resource) {
    try {
      resource.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
