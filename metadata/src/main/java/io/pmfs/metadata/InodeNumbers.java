package io.pmfs.metadata;

import io.pmfs.table.Family;
import java.util.concurrent.atomic.AtomicLong;

/** Assigns inode numbers, each only once in the lifetime of the database. Thread-safe. */
final class InodeNumbers {
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
   * Continues with another database, in which all numbers below {@code end} are taken. Assigns none
   * of them, nor a number that was assigned before.
   */
  synchronized void raise(long end) {
    next.accumulateAndGet(end, Math::max);
    reserved = 0;
  }

  /** The number that will be assigned next. */
  long next() {
    return next.get();
  }
}
