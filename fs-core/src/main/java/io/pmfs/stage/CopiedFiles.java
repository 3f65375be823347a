package io.pmfs.stage;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Which files were copied in this session, and of which the first reader, for whom they were
 * copied, is likely to be on its way still: what such a reader gets of the copy the source was
 * asked for a moment before. Takes a byte for each inode. Safe for use by many threads.
 */
final class CopiedFiles {
  /** Copied, and read to its end since. */
  private static final byte KNOWN = 1;

  /** The first of those that say in which minute it was copied. */
  private static final int FIRST_MINUTE = 2;

  /** Minutes are counted round this: one in so many is taken for a later one, once. */
  private static final int MINUTES = 250;

  private final InodeBytes states = new InodeBytes();
  private final LongSupplier nanoTime;

  /**
   * Of which none was copied.
   *
   * @param nanoTime a clock that only goes forward
   */
  CopiedFiles(LongSupplier nanoTime) {
    this.nanoTime = nanoTime;
  }

  /**
   * A file was copied.
   *
   * @param isBeingRead whether a reader, for whom it was, has not come to its end
   * @return whether it had been copied before
   */
  boolean add(long number, boolean isBeingRead) {
    boolean isKnown = states.get(number) != 0;
    states.set(number, isBeingRead ? (byte) (FIRST_MINUTE + minute()) : KNOWN);
    return isKnown;
  }

  /**
   * Whether a read of a file is one of those for which it was copied: not after it was read to its
   * end, nor after a minute or two.
   *
   * @param toItsEnd whether this read is to the file's end
   */
  boolean isJustCopied(long number, boolean toItsEnd) {
    byte state = states.get(number);
    if (state == 0 || state == KNOWN) {
      return false;
    }
    int age = Math.floorMod(minute() - (Byte.toUnsignedInt(state) - FIRST_MINUTE), MINUTES);
    if (toItsEnd || age > 1) {
      states.compareAndSet(number, state, KNOWN);
    }
    return age <= 1;
  }

  private int minute() {
    return Math.floorMod(TimeUnit.NANOSECONDS.toMinutes(nanoTime.getAsLong()), MINUTES);
  }
}
