package io.pmfs.tasks;

import java.time.Duration;
import java.util.List;

/** A started task over many files. Safe for use by many threads. */
public interface FileTask extends AutoCloseable {
  /** The request; without its paths once the task has ended. */
  TaskRequest request();

  /** How many paths of the request a successor can skip. */
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

  /** Asks the task to stop; what it did so far stays. Idempotent. */
  void cancel();

  /** Waits until the task has ended in any way; false if it did not within the timeout. */
  boolean await(Duration timeout) throws InterruptedException;

  /** Discards the findings: another task has replaced this one. */
  @Override
  void close();
}
