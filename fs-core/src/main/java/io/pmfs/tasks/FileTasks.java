package io.pmfs.tasks;

/** Starts tasks over many files of one dataset, one at a time. Thread-safe. */
public interface FileTasks extends AutoCloseable {
  /**
   * Starts a task in the background.
   *
   * @throws IllegalArgumentException if the request does not fit this dataset, for example names a
   *     tier that does not exist
   * @throws IllegalStateException if another task is running
   */
  FileTask start(TaskRequest request);

  /** Cancels the running task and waits for it; later starts fail. */
  @Override
  void close();
}
