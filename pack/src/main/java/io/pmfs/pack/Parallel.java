package io.pmfs.pack;

import com.google.common.util.concurrent.Uninterruptibles;
import io.pmfs.shards.FailedTask;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** Runs a task for each of many items, several at once. */
final class Parallel {
  /** The task; each thread has its own. */
  interface Task<T> {
    void run(T item) throws IOException, InterruptedException;
  }

  private Parallel() {}

  /**
   * Returns when all items are done. The first failure cancels the other threads through the
   * progress, and is thrown when they have ended.
   *
   * @param tasks called once for each thread
   */
  static <T> void forEach(
      List<T> items, int threads, Supplier<Task<T>> tasks, PackProgress progress)
      throws IOException, InterruptedException {
    Iterator<T> left = items.iterator();
    int count = Math.min(threads, items.size());
    if (count == 0) {
      return;
    }
    ExecutorService pool = Executors.newFixedThreadPool(count);
    try {
      ExecutorCompletionService<@Nullable Void> workers = new ExecutorCompletionService<>(pool);
      for (int i = 0; i < count; i++) {
        Task<T> task = tasks.get();
        workers.submit(
            () -> {
              for (T item = next(left); item != null; item = next(left)) {
                progress.checkNotCancelled();
                task.run(item);
              }
              return null;
            });
      }
      List<Throwable> failures = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        failureOf(workers.take(), progress, failures);
      }
      if (!failures.isEmpty()) {
        throwFirst(failures.get(0));
      }
    } finally {
      stop(pool);
    }
  }

  private static <T> @Nullable T next(Iterator<T> left) {
    synchronized (left) {
      return left.hasNext() ? left.next() : null;
    }
  }

  private static void failureOf(Future<?> worker, PackProgress progress, List<Throwable> failures)
      throws InterruptedException {
    try {
      worker.get();
    } catch (ExecutionException e) {
      progress.cancel();
      failures.add(e.getCause());
    }
  }

  private static void throwFirst(Throwable failure) throws IOException, InterruptedException {
    if (failure instanceof IOException e) {
      throw e;
    }
    if (failure instanceof InterruptedException e) {
      throw e;
    }
    throw FailedTask.unchecked(failure);
  }

  /**
   * Stops a pool and waits until it has ended, because the caller then closes what its threads use.
   */
  static void stop(ExecutorService pool) {
    pool.shutdownNow();
    Uninterruptibles.awaitTerminationUninterruptibly(pool);
  }
}
