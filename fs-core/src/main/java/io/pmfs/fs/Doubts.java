package io.pmfs.fs;

import io.pmfs.stage.copies.InodeBytes;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Which files may be of another version than the attributes from other nodes describe. Thread-safe.
 *
 * <p>The kernel reports opens until, in a row, as many opens found proved files as there are proved
 * files. After that, a file is proved when it is read.
 */
final class Doubts {
  private static final byte DOUBTED = 0;
  private static final byte PROVED = 1;

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

  /** Records that the file is of another version than described, and now described anew. */
  void contradict(long number) {
    marks.set(number, PROVED);
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
}
