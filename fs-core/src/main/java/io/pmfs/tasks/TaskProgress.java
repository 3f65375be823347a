package io.pmfs.tasks;

import io.pmfs.metadata.FileName;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The progress of a task.
 *
 * @param reason why the whole task failed; null unless it did
 * @param totalsAreFinal whether all names are counted; until then the totals grow
 * @param totalFiles files to process, as far as known
 * @param totalBytes the sum of their sizes
 * @param files files processed, with any outcome
 * @param bytes the sum of their sizes; for files being processed, the part that is done
 * @param directory the directory being processed
 * @param done files staged, verified or evicted by this task
 * @param present files that needed no work: the copy existed, or there was none to verify or evict
 * @param noRoom files for which no tier had room
 * @param failed files and paths with any other {@link TaskFinding}
 */
public record TaskProgress(
    State state,
    @Nullable String reason,
    boolean totalsAreFinal,
    long totalFiles,
    long totalBytes,
    long files,
    long bytes,
    FileName directory,
    long done,
    long present,
    long noRoom,
    long failed,
    Duration elapsed) {
  /** The state of a task. */
  public enum State {
    RUNNING,
    /** All files were processed; the counts show the outcome. */
    ENDED,
    CANCELLED,
    /** The task could not continue: see the reason. */
    FAILED
  }

  /** Whether every file has the requested state. */
  public boolean isComplete() {
    return state == State.ENDED && noRoom == 0 && failed == 0;
  }
}
