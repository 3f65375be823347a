package io.pmfs.daemon.requests;

import io.pmfs.fuse.protocol.AskedRequest;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Formats a line for each request that has waited long or took long. The lines per minute are
 * limited, because all requests are slow when the source is dead; at the end of the minute a line
 * states how many more there were. Not thread-safe.
 */
public final class SlowRequests {
  static final int MOST_LINES = 10;
  static final Duration WINDOW = Duration.ofMinutes(1);

  private final Duration limit;
  private final InstantSource clock;
  private final Consumer<String> lines;
  private @Nullable Instant windowEnd;
  private int reported;
  private long omitted;
  private long omittedWaiting;
  private Set<AskedRequest> waiting = Set.of(); // already reported

  /**
   * Starts with no slow requests.
   *
   * @param limit requests that take at least this long are slow; zero disables the lines
   * @param lines receives the lines
   */
  public SlowRequests(Duration limit, InstantSource clock, Consumer<String> lines) {
    this.limit = limit;
    this.clock = clock;
    this.lines = lines;
  }

  long leastNanos() {
    return limit.isZero() ? Long.MAX_VALUE : limit.toNanos();
  }

  boolean isOn() {
    return !limit.isZero();
  }

  /** Reports a slow request, up to the limit of lines. */
  void report(LogLine.Request request) {
    String outcome =
        String.format(Locale.ROOT, "took %.3f s: %s", request.micros() / 1e6, request.outcome());
    if (!emit(request.call(), outcome)) {
      omitted++;
    }
  }

  /** Reports unanswered slow requests, each of them once. */
  void report(List<WaitingRequest> requests) {
    for (WaitingRequest request : requests) {
      String outcome =
          String.format(
              Locale.ROOT, "has waited for %.3f s and has no answer", request.nanos() / 1e9);
      if (!waiting.contains(request.asked()) && !emit(request.call(), outcome)) {
        omittedWaiting++;
      }
    }
    waiting = requests.stream().map(WaitingRequest::asked).collect(Collectors.toSet());
  }

  private boolean emit(Call call, String outcome) {
    settle();
    if (windowEnd == null) {
      windowEnd = clock.instant().plus(WINDOW);
    }
    if (reported == MOST_LINES) {
      return false;
    }
    reported++;
    lines.accept("slow request: " + call.text() + " " + outcome);
    return true;
  }

  /** Once the minute is over, reports how many requests had no line. */
  void settle() {
    Instant end = windowEnd;
    if (end != null && !clock.instant().isBefore(end)) {
      sum("slow requests: %,d more took at least %s s within a minute", omitted);
      sum("slow requests: %,d more waited for at least %s s within a minute", omittedWaiting);
      windowEnd = null;
      reported = 0;
      omitted = 0;
      omittedWaiting = 0;
    }
  }

  private void sum(String sentence, long count) {
    if (count > 0) {
      lines.accept(String.format(Locale.ROOT, sentence, count, text(limit)));
    }
  }

  private static String text(Duration time) {
    long millis = time.toMillis();
    return millis % 1000 == 0
        ? Long.toString(millis / 1000)
        : String.format(Locale.ROOT, "%.3f", millis / 1e3);
  }
}
