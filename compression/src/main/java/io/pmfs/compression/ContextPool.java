package io.pmfs.compression;

import java.io.Closeable;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Idle native contexts, at most one per processor. Safe for use by many threads. */
final class ContextPool<T extends Closeable> implements AutoCloseable {
  private final Supplier<T> maker;
  private final int limit = Runtime.getRuntime().availableProcessors();
  private final Deque<T> idle = new ArrayDeque<>(limit); // GUARDED_BY(this)
  private boolean closed; // GUARDED_BY(this)

  ContextPool(Supplier<T> maker) {
    this.maker = maker;
  }

  /** A context that is the caller's until it is given back. */
  T take() {
    T context = poll();
    return context == null ? maker.get() : context;
  }

  private synchronized @Nullable T poll() {
    if (closed) {
      throw new IllegalStateException("the codec is closed");
    }
    return idle.pollLast();
  }

  void giveBack(T context) {
    if (!keep(context)) {
      free(context);
    }
  }

  private synchronized boolean keep(T context) {
    return !closed && idle.size() < limit && idle.offerLast(context);
  }

  /** Contexts that are out are freed when they come back. */
  @Override
  public synchronized void close() {
    closed = true;
    idle.forEach(ContextPool::free);
    idle.clear();
  }

  private static void free(Closeable context) {
    try {
      context.close();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
