package io.pmfs.fs;

import io.pmfs.metadata.FileName;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * How far a task is.
 *
 * @param reason why it failed as a whole; null unless it did
 * @param totalsAreFinal whether all names are known; until then the totals grow
 * @param totalFiles files to look at, as far as known
 * @param totalBytes their sizes together
 * @param files files done with, in whatever way
 * @param bytes their sizes together; for the file being worked on, the part that is done
 * @param directory the one it is in
 * @param done files staged, verified or evicted by this task
 * @param present files that needed nothing: the copy was there, or none was to be verified or
 *     evicted
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
  /** Where it stands. */
  public enum State {
    RUNNING,
    /** All was looked at; the counts say what came of it. */
    ENDED,
    CANCELLED,
    /** It could not go on: see the reason. */
    FAILED
  }

  /** Whether everything that was asked for is so. */
  public boolean isComplete() {
    return state == State.ENDED && noRoom == 0 && failed == 0;
  }
}
