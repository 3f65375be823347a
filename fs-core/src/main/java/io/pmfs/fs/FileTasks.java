package io.pmfs.fs;

import org.jspecify.annotations.Nullable;

/** Starts tasks over many files of one dataset, one at a time. Safe for use by many threads. */
public interface FileTasks extends AutoCloseable {
  /**
   * Starts a task in the background.
   *
   * @throws IllegalArgumentException if the request makes no sense for this dataset, for example
   *     names a tier that it has not
   * @throws IllegalStateException if another task is running
   */
  FileTask start(TaskRequest request);

  /** The running task, or else the last one; null if there was none in this session. */
  @Nullable FileTask latest();

  /** Cancels what is running and waits for it; later starts fail. */
  @Override
  void close();
}
