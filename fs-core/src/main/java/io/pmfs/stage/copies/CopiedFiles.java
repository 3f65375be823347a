package io.pmfs.stage.copies;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Records which files were copied in this session, and which of them the reader that caused the
 * copy is probably still reading; its reads count as fetched (see {@code ReadOrigins}). Uses one
 * byte per inode. Thread-safe.
 */
public final class CopiedFiles {
  /** Copied, and since read to its end. */
  private static final byte KNOWN = 1;

  /** The first state that encodes the minute in which the file was copied. */
  private static final int FIRST_MINUTE = 2;

  /** Minutes wrap around here: once in this many minutes an old copy is mistaken for a new one. */
  private static final int MINUTES = 250;

  private final InodeBytes states = new InodeBytes();
  private final LongSupplier nanoTime;

  /**
   * An empty record.
   *
   * @param nanoTime a monotonic clock
   */
  public CopiedFiles(LongSupplier nanoTime) {
    this.nanoTime = nanoTime;
  }

  /**
   * Records that a file was copied.
   *
   * @param isBeingRead whether the reader for whom it was copied has not reached its end yet
   * @return whether it had been copied before
   */
  public boolean add(long number, boolean isBeingRead) {
    boolean isKnown = states.get(number) != 0;
    states.set(number, isBeingRead ? (byte) (FIRST_MINUTE + minute()) : KNOWN);
    return isKnown;
  }

  /**
   * Whether a read is one of those for which the file was copied: false after the file was read to
   * its end, or after a minute or two.
   *
   * @param toItsEnd whether this read reaches the file's end
   */
  public boolean isJustCopied(long number, boolean toItsEnd) {
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
