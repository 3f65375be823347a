package io.pmfs.stage;

/**
 * What staging is doing and did in this session.
 *
 * @param active files being copied now, those that wait for a thread included
 * @param queued files that wait for a thread to fetch them
 * @param completed copies made
 * @param copiedAgain of these, of files that had been copied in this session before
 * @param dropped files not copied because the queue was full; a later read asks again
 * @param skippedNoRoom files for which no tier had room when they were first asked for
 * @param failed copies given up: the source or a tier failed, or the source changed
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
  /** Whether nothing is left to do. */
  public boolean idle() {
    return active == 0 && !evicting;
  }
}
