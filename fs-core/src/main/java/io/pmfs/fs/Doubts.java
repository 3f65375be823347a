package io.pmfs.fs;

import io.pmfs.stage.copies.InodeBytes;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * What is known of the versions of files whose attributes other nodes described. Safe for use by
 * many threads.
 *
 * <p>The kernel keeps attributes for long. If a file turns out to be of another version, it is not
 * read until the kernel has asked for its attributes again: the new content would be cut to the old
 * size.
 *
 * <p>The kernel tells of opens until many files in a row were proved before. A file that is opened
 * untold after that is proved when it is read.
 */
final class Doubts {
  private static final byte DOUBTED = 0;
  private static final byte PROVED = 1;

  /** It is another version than the kernel was told. */
  private static final byte UNTOLD = 2;

  /** The kernel was told since, but may still have pages of the other version. */
  private static final byte TOLD = 3;

  /** After so many opens of proved files in a row, opens cost more than they tell. */
  private static final int MANY = 10_000;

  private final InodeBytes marks = new InodeBytes();
  private final AtomicInteger provedInARow = new AtomicInteger();

  /** The file is as it was described. */
  void prove(long number) {
    marks.compareAndSet(number, DOUBTED, PROVED);
    provedInARow.set(0);
  }

  /** Whether nothing that is opened is doubted any more, by all appearances. */
  boolean isSettled() {
    return provedInARow.get() >= MANY;
  }

  /** The file is not as it was described. */
  void contradict(long number) {
    marks.set(number, UNTOLD);
  }

  /** Called before attributes are read for the kernel. */
  void tell(long number) {
    if (isUntold(number)) {
      marks.compareAndSet(number, UNTOLD, TOLD);
    }
  }

  /** Asked at each open. */
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

  boolean isUntold(long number) {
    return marks.get(number) == UNTOLD;
  }

  /** Whether the kernel may keep its pages of a file that is opened. */
  boolean keepsPages(long number) {
    return !marks.compareAndSet(number, TOLD, PROVED);
  }
}
