package io.pmfs.fs;

import io.pmfs.stage.copies.InodeBytes;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Which files may be of another version than the attributes from other nodes describe. Thread-safe.
 *
 * <p>The kernel caches attributes for long. A file found to be of another version is not read until
 * the kernel requests its attributes again; otherwise the new content would be truncated to the old
 * size.
 *
 * <p>The kernel reports opens until, in a row, as many opens found proved files as there are proved
 * files. After that, a file is proved when it is read.
 */
final class Doubts {
  private static final byte DOUBTED = 0;
  private static final byte PROVED = 1;

  /** It is of another version than the attributes that the kernel has. */
  private static final byte STALE = 2;

  /** The kernel got new attributes, but may still have pages of the old version. */
  private static final byte REFRESHED = 3;

  /**
   * Opens of proved files in a row after which reporting opens costs more than it helps: on average
   * each proved file was opened once more, but at least and at most so many.
   */
  private static final int FEW = 1000;

  private static final int MANY = 10_000;

  private final InodeBytes marks = new InodeBytes();
  private final AtomicInteger proved = new AtomicInteger();
  private final AtomicInteger provedInARow = new AtomicInteger();

  /** Records that the file is as described. */
  void prove(long number) {
    if (marks.compareAndSet(number, DOUBTED, PROVED)) {
      proved.incrementAndGet();
    }
    provedInARow.set(0);
  }

  /** Whether the opened files have been proved for so long that opens need not be reported. */
  boolean isSettled() {
    return provedInARow.get() >= Math.min(MANY, Math.max(FEW, proved.get()));
  }

  /** Records that the file is of another version than described. */
  void contradict(long number) {
    marks.set(number, STALE);
  }

  /** Called before attributes are read for the kernel. */
  void refresh(long number) {
    if (isStale(number)) {
      marks.compareAndSet(number, STALE, REFRESHED);
    }
  }

  /** Whether to prove the file now; called at each open. */
  boolean isDoubtedAtOpen(long number) {
    boolean isDoubted = isDoubted(number);
    if (!isDoubted && !isSettled()) {
      provedInARow.incrementAndGet();
    }
    return isDoubted;
  }

  boolean isDoubted(long number) {
    return marks.get(number) == DOUBTED;
  }

  boolean isStale(long number) {
    return marks.get(number) == STALE;
  }

  boolean hasOldPages(long number) {
    return marks.get(number) == REFRESHED;
  }

  /** Whether the kernel may keep its pages of a file that is opened. */
  boolean keepsPages(long number) {
    return !marks.compareAndSet(number, REFRESHED, PROVED);
  }
}
