package io.pmfs.fuse.protocol;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * How long the kernel's requests took, by operation: a histogram of fixed buckets, each twice as
 * wide as the previous one, and a listener for single requests. Thread-safe; recording takes no
 * lock and allocates nothing.
 */
public final class RequestLatencies {
  private static final Logger log = LoggerFactory.getLogger(RequestLatencies.class);

  /** The upper bound of the first bucket is 2 to this many nanoseconds: 4.1 µs. */
  private static final int FIRST_POWER = 12;

  /** The last bound is 34 s; slower requests count in one more bucket. */
  private static final int BOUNDS = 24;

  /** The begin time of a request that is not timed. */
  public static final long NEVER = Long.MIN_VALUE;

  /** The duration of a request that is not timed. */
  static final long UNTIMED = -1;

  private final AtomicReferenceArray<Row> rows = new AtomicReferenceArray<>(Opcode.NUMBERS);

  private volatile boolean on = true;
  private volatile @Nullable RequestListener listener;

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
   * @param operation the name in FUSE, in lower case
   * @param buckets how many requests took at most the bound with the same index in {@link
   *     #boundsSeconds} and longer than the bound before; the last bucket counts requests that took
   *     longer than all bounds
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

  /** Turns recording and reporting on or off, to measure their cost. */
  public void record(boolean whether) {
    on = whether;
  }

  /** Calls the listener for every request from now on. */
  public void listen(RequestListener next) {
    listener = next;
  }

  public @Nullable RequestListener listener() {
    return listener;
  }

  /** The time at which a request begins, for {@link #end}; {@link #NEVER} while switched off. */
  public long begin() {
    return on ? System.nanoTime() : NEVER;
  }

  /** Records a request that began at that time; returns how long it took, or {@link #UNTIMED}. */
  public long end(Opcode opcode, long begin) {
    if (begin == NEVER) {
      return UNTIMED;
    }
    long nanoseconds = Math.max(0, System.nanoTime() - begin);
    add(opcode, nanoseconds);
    return nanoseconds;
  }

  /**
   * Like {@link #end(Opcode, long)}, and notifies the listener. Never fails, because the request
   * was answered.
   */
  public void end(Opcode opcode, long begin, KernelRequest request, KernelReply reply) {
    try {
      long nanos = end(opcode, begin);
      RequestListener receiver = listener;
      if (receiver != null
          && opcode.isAnswered()
          && (nanos >= receiver.leastNanos()
              || (nanos >= 0 && receiver.wants(opcode, reply.errno())))) {
        receiver.answered(request.answered(opcode, reply, begin, nanos));
      }
    } catch (RuntimeException | Error e) {
      log.error("cannot count or report a request", e);
    }
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

  /** The first bucket whose bound is at least that large. */
  private static int bucket(long nanoseconds) {
    int power = Long.SIZE - Long.numberOfLeadingZeros(Math.max(1, nanoseconds) - 1);
    return Math.min(BOUNDS, Math.max(0, power - FIRST_POWER));
  }

  /** The operations that were requested, in the order of their opcodes. */
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
