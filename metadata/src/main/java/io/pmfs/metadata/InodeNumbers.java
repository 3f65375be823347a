package io.pmfs.metadata;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Gives out inode numbers, each once for as long as the database lives. Safe for use by many
 * threads.
 */
final class InodeNumbers {
  /** The first number that is given out. */
  static final long FIRST = Namespace.ROOT + 1;

  static final int RESERVED = 4096;

  private final Database database;
  private final NumberMark mark;
  private final AtomicLong next;

  // INVARIANT: a number is used only after a higher reservation has been written; writes keep their
  // order, so no crash leaves the number without its reservation.
  private volatile long reserved;

  InodeNumbers(Database database, NumberMark mark, long next) {
    this.database = database;
    this.mark = mark;
    this.next = new AtomicLong(next);
    this.reserved = next;
  }

  long take() {
    long number = next.getAndIncrement();
    if (number >= reserved) {
      reserve(number);
    }
    return number;
  }

  private synchronized void reserve(long number) {
    if (number >= reserved) {
      long end = next.get() + RESERVED;
      mark.raise(end);
      database.put(Family.DEFAULT, Keys.NEXT_NUMBER, Values.number(end));
      reserved = end;
    }
  }

  /**
   * From now on the database is another, in which numbers below this one are taken; what this one
   * gave out is not given out again.
   */
  synchronized void raise(long end) {
    next.accumulateAndGet(end, Math::max);
    reserved = 0;
  }

  /** The number that would be taken next. */
  long next() {
    return next.get();
  }
}
