package io.pmfs.cli;

/** Shows the user how far a task is, while it runs. */
interface TaskDisplay extends AutoCloseable {
  /** Takes the newest report; called often. */
  void show(TaskReport report);

  @Override
  void close();
}
