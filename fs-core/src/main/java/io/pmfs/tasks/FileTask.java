package io.pmfs.tasks;

import java.time.Duration;
import java.util.List;

/** A started task over many files. Thread-safe. */
public interface FileTask extends AutoCloseable {
  /** The request; without its paths once the task has ended. */
  TaskRequest request();

  /** How many paths of the request a later task can skip. */
  long position();

  /** A snapshot; cheap enough to be taken several times a second. */
  TaskProgress progress();

  /**
   * Findings about single files, in the order they were found. Successes are only counted. Kept
   * until the task is closed.
   *
   * @param from how many findings to skip
   * @param limit the most findings to return
   */
  List<TaskFinding> findings(long from, int limit);

  /** Asks the task to stop, without undoing what it did. Idempotent. */
  void cancel();

  /** Waits for the end of the task, of whatever kind; false on timeout. */
  boolean await(Duration timeout) throws InterruptedException;

  /** Discards the findings: another task has replaced this one. */
  @Override
  void close();
}
