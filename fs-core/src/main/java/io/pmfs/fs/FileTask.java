package io.pmfs.fs;

import java.time.Duration;
import java.util.List;

/** A task over many files that was started. Safe for use by many threads. */
public interface FileTask {
  TaskRequest request();

  /** A snapshot; cheap enough to be taken several times a second. */
  TaskProgress progress();

  /**
   * What there is to report of single files, in the order it was found; good outcomes are only
   * counted. Kept until the next task starts.
   *
   * @param from how many to skip
   * @param limit how many at most
   */
  List<TaskFinding> findings(long from, int limit);

  /** Asks it to stop; what it did so far stays. Idempotent. */
  void cancel();

  /** Waits until it has ended, however; says whether it did within the time. */
  boolean await(Duration timeout) throws InterruptedException;
}
