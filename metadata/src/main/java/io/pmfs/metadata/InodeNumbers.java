package io.pmfs.metadata;

import java.util.concurrent.atomic.AtomicLong;

/**
 * Gives out inode numbers, each once for as long as the database lives. Safe for use by many
 * threads.
 */
final class InodeNumbers {
  /** The first number that is given out. */
  static final long FIRST = Namespace.ROOT + 1;

  private static final int RESERVED = 4096;

  private final Database database;
  private final AtomicLong next;

  // INVARIANT: a number is used only after a higher reservation has been written; writes keep their
  // order, so no crash leaves the number without its reservation.
  private volatile long reserved;

  InodeNumbers(Database database, long next) {
    this.database = database;
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
      long end = number + RESERVED;
      database.put(Family.DEFAULT, Keys.NEXT_NUMBER, Values.number(end));
      reserved = end;
    }
  }

  /** The number that would be taken next. */
  long next() {
    return next.get();
  }
}
