package io.pmfs.stage;

/**
 * The state and counts of staging in this session.
 *
 * @param active files being copied now, including those that wait for a thread
 * @param queued files that wait for a thread to fetch them
 * @param completed copies made
 * @param copiedAgain of these, copies of files that had been copied before in this session
 * @param dropped files not copied because the queue was full; a later read tries again
 * @param skippedNoRoom files for which no tier had room when they were first requested
 * @param failed copies abandoned because the source or a tier failed, or the source changed
 * @param evicted copies removed to make room
 * @param evicting whether copies are being removed to make room
 */
public record StagerStatus(
    long active,
    long queued,
    long completed,
    long copiedAgain,
    long dropped,
    long skippedNoRoom,
    long failed,
    long evicted,
    boolean evicting) {
  public boolean idle() {
    return active == 0 && !evicting;
  }
}
