package io.pmfs.shards;

import org.jspecify.annotations.Nullable;

/** Turns the failure of another thread's task into an unchecked exception. */
public final class FailedTask {
  private FailedTask() {}

  /** Returns the cause as an unchecked exception, or throws it if it is an Error. */
  public static RuntimeException unchecked(@Nullable Throwable cause) {
    if (cause instanceof Error error) {
      throw error;
    }
    return cause instanceof RuntimeException e ? e : new IllegalStateException(cause);
  }
}
