package io.pmfs.fs;

import java.time.Duration;
import java.util.List;

/** A task over many files that was started. Safe for use by many threads. */
public interface FileTask extends AutoCloseable {
  /** What it is to do; without its paths once it has ended. */
  TaskRequest request();

  /** How many paths of the request a successor need not look at again. */
  long position();

  /** A snapshot; cheap enough to be taken several times a second. */
  TaskProgress progress();

  /**
   * What there is to report of single files, in the order it was found; good outcomes are only
   * counted. Kept until it is closed.
   *
   * @param from how many to skip
   * @param limit how many at most
   */
  List<TaskFinding> findings(long from, int limit);

  /** Asks it to stop; what it did so far stays. Idempotent. */
  void cancel();

  /** Waits until it has ended, however; says whether it did within the time. */
  boolean await(Duration timeout) throws InterruptedException;

  /** Gives up its findings: another task has taken its place. */
  @Override
  void close();
}
