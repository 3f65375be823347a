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
 * Makes a line for each request that has waited long, and for each that took long. The lines are
 * limited to so many a minute, because all requests are slow when the source is dead. At the end of
 * the minute a line says how many more there were. For one thread.
 */
public final class SlowRequests {
  static final int MOST_LINES = 10;
  static final Duration WINDOW = Duration.ofMinutes(1);

  private final Duration limit;
  private final InstantSource clock;
  private final Consumer<String> lines;
  private @Nullable Instant windowEnd;
  private int said;
  private long unsaid;
  private long unsaidWaiting;
  private Set<AskedRequest> waiting = Set.of(); // already reported

  /**
   * Starts without slow requests.
   *
   * @param limit requests that take at least this long are slow; zero turns this off
   * @param lines takes the lines
   */
  public SlowRequests(Duration limit, InstantSource clock, Consumer<String> lines) {
    this.limit = limit;
    this.clock = clock;
    this.lines = lines;
  }

  /** The limit in nanoseconds. */
  long leastNanos() {
    return limit.isZero() ? Long.MAX_VALUE : limit.toNanos();
  }

  /** Whether there is a limit. */
  boolean isOn() {
    return !limit.isZero();
  }

  /** Reports a slow request, unless there were enough lines. */
  void tell(LogLine.Request request) {
    String outcome =
        String.format(Locale.ROOT, "took %.3f s: %s", request.micros() / 1e6, request.outcome());
    if (!say(request.call(), outcome)) {
      unsaid++;
    }
  }

  /** Reports slow requests that still have no answer, each of them once. */
  void tell(List<WaitingRequest> requests) {
    for (WaitingRequest request : requests) {
      String outcome =
          String.format(
              Locale.ROOT, "has waited for %.3f s and has no answer", request.nanos() / 1e9);
      if (!waiting.contains(request.asked()) && !say(request.call(), outcome)) {
        unsaidWaiting++;
      }
    }
    waiting = requests.stream().map(WaitingRequest::asked).collect(Collectors.toSet());
  }

  private boolean say(Call call, String outcome) {
    settle();
    if (windowEnd == null) {
      windowEnd = clock.instant().plus(WINDOW);
    }
    if (said == MOST_LINES) {
      return false;
    }
    said++;
    lines.accept("slow request: " + call.text() + " " + outcome);
    return true;
  }

  /** Reports how many requests had no line, once the minute is over. */
  void settle() {
    Instant end = windowEnd;
    if (end != null && !clock.instant().isBefore(end)) {
      sum("slow requests: %,d more took at least %s s within a minute", unsaid);
      sum("slow requests: %,d more waited for at least %s s within a minute", unsaidWaiting);
      windowEnd = null;
      said = 0;
      unsaid = 0;
      unsaidWaiting = 0;
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
