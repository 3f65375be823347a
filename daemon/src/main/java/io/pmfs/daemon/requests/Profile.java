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
 * Requests added up by one of their properties. So many keys are told apart; when there are more,
 * the half that took the least time is summed up as others, and a key of these that comes again
 * begins anew: sums are exact, and those that matter stay. Safe for use by many threads.
 */
public final class Profile {
  /** Up to 10 KiB each, a few hundred bytes for one that came once. */
  static final int MOST_KEYS = 4096;

  /** Values are within 1 %. */
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

  /** Requests of one key. */
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

    /** The histogram's value is the highest that it does not tell from the recorded one. */
    private double atMost(long value) {
      return Math.min(value, longestMicros) / 1e3;
    }
  }

  /**
   * What there is about one key, in {@code pmfs profile --json}.
   *
   * @param perSecond requests in a second
   * @param timeShare its part of the time that all requests took together, 0 to 1
   * @param p50Millis half of the requests took at most so long, within 1 %
   * @param failed requests that were answered with an error: with ENOENT of a name, not with ENOSYS
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
   * All of it, in {@code pmfs profile --json}.
   *
   * @param by what requests are added up by
   * @param isTotal whether it is about all the time, not an interval
   * @param seconds the time that it is about
   * @param missing requests that had no line
   * @param unreadable lines that are none
   * @param rows those that took the most time first
   * @param others what is in no row; null if that is nothing
   * @param otherKeys how many keys these are at most
   * @param all everything; its key is {@code all}
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

  /** Adds a line of an access log; null for one that is none. */
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

  /** From the first request to the end of the last one, as the lines have it. */
  public synchronized double seconds() {
    return first == null || last == null
        ? 0
        : Duration.between(Objects.requireNonNull(first), last).toNanos() / 1e9;
  }

  /**
   * What was added since the start, or the last {@link #drain}.
   *
   * @param isTotal whether that is all the time
   * @param seconds how long that is
   * @param top how many rows at most
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

  /** The same of an interval, after which it begins anew. */
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
