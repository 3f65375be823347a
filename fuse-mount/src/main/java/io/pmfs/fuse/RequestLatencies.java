package io.pmfs.fuse;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.atomic.LongAdder;

/**
 * How long requests of the kernel took, by operation: a histogram of fixed buckets, each twice as
 * wide as the one before. Safe for use by many threads; to record takes no lock and no memory.
 */
public final class RequestLatencies {
  /** The upper bound of the first bucket is 2 to this many nanoseconds: 4.1 µs. */
  private static final int FIRST_POWER = 12;

  /** The last bound is 34 s; what takes longer is in one more bucket. */
  private static final int BOUNDS = 24;

  /** When a request began that is not timed. */
  static final long NEVER = Long.MIN_VALUE;

  /** How long a request took that is not timed. */
  static final long UNTIMED = -1;

  private final AtomicReferenceArray<Row> rows = new AtomicReferenceArray<>(Opcode.NUMBERS);

  private volatile boolean on = true;

  /** One operation's counts. */
  private static final class Row {
    private final LongAdder[] buckets = new LongAdder[BOUNDS + 1];
    private final LongAdder nanoseconds = new LongAdder();

    Row() {
      for (int i = 0; i < buckets.length; i++) {
        buckets[i] = new LongAdder();
      }
    }
  }

  /**
   * The requests of one operation since the start.
   *
   * @param operation as FUSE calls it, in lower case
   * @param buckets how many took at most as long as the bound of the same index in {@link
   *     #boundsSeconds} and longer than the one before; the last one those that took longer than
   *     all bounds
   */
  public record Operation(String operation, double sumSeconds, List<Long> buckets) {
    public Operation {
      buckets = List.copyOf(buckets);
    }

    public long count() {
      return buckets.stream().mapToLong(Long::longValue).sum();
    }
  }

  /** The upper bounds of all buckets but the last, in seconds, ascending. */
  public static List<Double> boundsSeconds() {
    List<Double> bounds = new ArrayList<>();
    for (int i = 0; i < BOUNDS; i++) {
      bounds.add((1L << (FIRST_POWER + i)) / 1e9);
    }
    return bounds;
  }

  /** Stops or goes on recording and telling: to measure what that costs. */
  public void record(boolean whether) {
    on = whether;
  }

  /** The time at which a request begins, for {@link #end}; {@link #NEVER} while switched off. */
  long begin() {
    return on ? System.nanoTime() : NEVER;
  }

  /** Records a request that began then; says how long it took, or {@link #UNTIMED}. */
  long end(Opcode opcode, long begin) {
    if (begin == NEVER) {
      return UNTIMED;
    }
    long nanoseconds = Math.max(0, System.nanoTime() - begin);
    add(opcode, nanoseconds);
    return nanoseconds;
  }

  void add(Opcode opcode, long nanoseconds) {
    Row row = rows.get(opcode.number());
    if (row == null) {
      row = firstOf(opcode);
    }
    row.buckets[bucket(nanoseconds)].increment();
    row.nanoseconds.add(nanoseconds);
  }

  private Row firstOf(Opcode opcode) {
    rows.compareAndSet(opcode.number(), null, new Row());
    return rows.get(opcode.number());
  }

  /** The first whose bound is not less. */
  private static int bucket(long nanoseconds) {
    int power = Long.SIZE - Long.numberOfLeadingZeros(Math.max(1, nanoseconds) - 1);
    return Math.min(BOUNDS, Math.max(0, power - FIRST_POWER));
  }

  /** Those operations that were asked for, in the order of their numbers. */
  public List<Operation> snapshot() {
    List<Operation> operations = new ArrayList<>();
    for (Opcode opcode : Opcode.values()) {
      Row row = rows.get(opcode.number());
      if (row != null) {
        List<Long> buckets = new ArrayList<>();
        for (LongAdder bucket : row.buckets) {
          buckets.add(bucket.sum());
        }
        operations.add(new Operation(opcode.word(), row.nanoseconds.sum() / 1e9, buckets));
      }
    }
    return operations;
  }
}
