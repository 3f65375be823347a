package io.pmfs.machine;

import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** Runs actions that may hang in the kernel, each with a time limit. */
public final class Limited {
  private Limited() {}

  /**
   * Returns the action's result.
   *
   * @throws IOException with a one-line message if the action fails, cannot be started or exceeds
   *     the limit; it may then continue on a daemon thread
   */
  public static <T extends @Nullable Object> T call(Duration limit, Callable<T> action)
      throws IOException {
    FutureTask<T> task = new FutureTask<>(action);
    Thread thread = new Thread(task, "limited");
    thread.setDaemon(true);
    try {
      thread.start();
      return task.get(limit.toMillis(), TimeUnit.MILLISECONDS);
    } catch (OutOfMemoryError e) {
      throw new IOException("cannot start a thread: " + e.getMessage(), e);
    } catch (TimeoutException e) {
      task.cancel(true);
      throw new IOException("not done within " + limit.toSeconds() + " s", e);
    } catch (ExecutionException e) {
      throw new IOException(reason(e.getCause()), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IOException("interrupted", e);
    }
  }

  private static String reason(@Nullable Throwable cause) {
    if (cause instanceof IOException e
        && e.getMessage() != null
        && e.getClass() == IOException.class) {
      return e.getMessage();
    }
    return cause == null ? "failed" : String.valueOf(cause).replaceFirst("^java\\.[\\w.]+\\.", "");
  }
}
