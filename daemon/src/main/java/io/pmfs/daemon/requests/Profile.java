package io.pmfs.daemon.requests;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.HdrHistogram.IntCountsHistogram;
import org.jspecify.annotations.Nullable;

/**
 * Sums of requests by one of their properties. Beyond a limit of keys, the half with the least time
 * is merged into {@code others}; if such a key occurs again, it restarts at zero. Totals are exact,
 * and the important keys are kept. Thread-safe.
 */
public final class Profile {
  /** A key uses a few hundred bytes if it occurs once, at most 10 KiB. */
  static final int MOST_KEYS = 4096;

  /** Significant decimal digits: values are exact to 1 %. */
  private static final int DIGITS = 2;

  private static final long LONGEST_MICROS = Duration.ofHours(10).toNanos() / 1000;

  private final ProfileKey by;
  private final int mostKeys;
  private final Map<String, Sum> sums = new HashMap<>();
  private Sum others = new Sum();
  private long otherKeys;
  private long missing;
  private long unreadable;
  private @Nullable Instant first;
  private @Nullable Instant last;

  /** The requests of one key. */
  private static final class Sum {
    private long count;
    private long bytes;
    private long micros;
    private long longestMicros;
    private long failed;
    private final IntCountsHistogram histogram = new IntCountsHistogram(DIGITS);

    Sum() {
      histogram.setAutoResize(true);
    }

    void add(LogLine.Request request) {
      count++;
      bytes += Math.max(0, request.bytes());
      micros += request.micros();
      longestMicros = Math.max(longestMicros, request.micros());
      failed += request.isFailed() ? 1 : 0;
      histogram.recordValue(Math.min(LONGEST_MICROS, request.micros()));
    }

    void add(Sum other) {
      count += other.count;
      bytes += other.bytes;
      micros += other.micros;
      longestMicros = Math.max(longestMicros, other.longestMicros);
      failed += other.failed;
      histogram.add(other.histogram);
    }

    Row row(String key, long allMicros, double seconds) {
      return new Row(
          key,
          count,
          seconds > 0 ? count / seconds : 0,
          bytes,
          allMicros == 0 ? 0 : (double) micros / allMicros,
          count == 0 ? 0 : micros / 1e3 / count,
          atMost(histogram.getValueAtPercentile(50)),
          atMost(histogram.getValueAtPercentile(99)),
          longestMicros / 1e3,
          failed);
    }

    /** The histogram rounds up to the end of a bucket, which may exceed the longest duration. */
    private double atMost(long value) {
      return Math.min(value, longestMicros) / 1e3;
    }
  }

  /**
   * The row of one key, in {@code pmfs profile --json}.
   *
   * @param perSecond requests per second
   * @param timeShare its fraction of the total time of all requests, 0 to 1
   * @param p50Millis half of the requests took at most this long, within 1 %
   * @param failed requests answered with an error; includes ENOENT for a name, but not ENOSYS
   */
  public record Row(
      String key,
      long count,
      double perSecond,
      long bytes,
      double timeShare,
      double meanMillis,
      double p50Millis,
      double p99Millis,
      double longestMillis,
      long failed) {}

  /**
   * The whole profile, in {@code pmfs profile --json}.
   *
   * @param by the property that is the key
   * @param isTotal whether it covers the whole time, not an interval
   * @param seconds the time covered
   * @param missing requests without a line
   * @param unreadable malformed lines
   * @param rows the keys that took the most time, in descending order
   * @param others the sum of all other keys; null if there are none
   * @param otherKeys an upper bound for the number of other keys
   * @param all the sum of all requests; its key is {@code all}
   */
  public record Report(
      String by,
      boolean isTotal,
      double seconds,
      long missing,
      long unreadable,
      List<Row> rows,
      @Nullable Row others,
      long otherKeys,
      Row all) {
    public Report {
      rows = List.copyOf(rows);
    }
  }

  public Profile(ProfileKey by) {
    this(by, MOST_KEYS);
  }

  Profile(ProfileKey by, int mostKeys) {
    this.by = by;
    this.mostKeys = mostKeys;
  }

  /** Adds a line of an access log; null for a malformed line. */
  public synchronized void add(@Nullable LogLine line) {
    if (line instanceof LogLine.Request request) {
      add(request);
    } else if (line instanceof LogLine.Missing some) {
      missing += some.requests();
    } else {
      unreadable++;
    }
  }

  private void add(LogLine.Request request) {
    Instant begin = request.time();
    Instant end = begin.plusNanos(Math.min(LONGEST_MICROS, request.micros()) * 1000);
    first = first == null || begin.isBefore(first) ? begin : first;
    last = last == null || end.isAfter(last) ? end : last;
    String key = by.of(request.call());
    Sum sum = sums.get(key);
    if (sum == null) {
      if (sums.size() >= mostKeys) {
        sumUpOthers();
      }
      sum = new Sum();
      sums.put(key, sum);
    }
    sum.add(request);
  }

  private void sumUpOthers() {
    List<Map.Entry<String, Sum>> ascending = new ArrayList<>(sums.entrySet());
    ascending.sort(Comparator.comparingLong(entry -> entry.getValue().micros));
    for (Map.Entry<String, Sum> entry : ascending.subList(0, Math.max(1, mostKeys / 2))) {
      others.add(entry.getValue());
      otherKeys++;
      sums.remove(entry.getKey());
    }
  }

  /** The time from the first request to the end of the last one. */
  public synchronized double seconds() {
    return first == null || last == null
        ? 0
        : Duration.between(Objects.requireNonNull(first), last).toNanos() / 1e9;
  }

  /**
   * The requests added since the start, or since the last {@link #drain}.
   *
   * @param isTotal whether the report covers the whole time
   * @param seconds the time covered
   * @param top the largest number of rows
   */
  public synchronized Report report(boolean isTotal, double seconds, int top) {
    long allMicros = others.micros + sums.values().stream().mapToLong(sum -> sum.micros).sum();
    List<Map.Entry<String, Sum>> ordered = new ArrayList<>(sums.entrySet());
    ordered.sort(
        Comparator.comparingLong((Map.Entry<String, Sum> entry) -> entry.getValue().micros)
            .reversed()
            .thenComparing(Map.Entry::getKey));
    List<Row> rows = new ArrayList<>();
    Sum rest = new Sum();
    rest.add(others);
    long restKeys = otherKeys;
    Sum all = new Sum();
    all.add(others);
    for (Map.Entry<String, Sum> entry : ordered) {
      all.add(entry.getValue());
      if (rows.size() < top) {
        rows.add(entry.getValue().row(entry.getKey(), allMicros, seconds));
      } else {
        rest.add(entry.getValue());
        restKeys++;
      }
    }
    return new Report(
        by.word(),
        isTotal,
        seconds,
        missing,
        unreadable,
        rows,
        rest.count == 0 ? null : rest.row("others", allMicros, seconds),
        restKeys,
        all.row("all", allMicros, seconds));
  }

  /** Reports an interval, then resets the sums. */
  public synchronized Report drain(double seconds, int top) {
    Report report = report(false, seconds, top);
    sums.clear();
    others = new Sum();
    otherKeys = 0;
    missing = 0;
    unreadable = 0;
    first = null;
    last = null;
    return report;
  }
}
