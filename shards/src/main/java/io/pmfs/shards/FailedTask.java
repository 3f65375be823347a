package io.pmfs.shards;

import org.jspecify.annotations.Nullable;

/** Why a task of another thread failed. */
public final class FailedTask {
  private FailedTask() {}

  /** The cause of a failed task, which nothing declares. */
  public static RuntimeException unchecked(@Nullable Throwable cause) {
    if (cause instanceof Error error) {
      throw error;
    }
    return cause instanceof RuntimeException e ? e : new IllegalStateException(cause);
  }
}
