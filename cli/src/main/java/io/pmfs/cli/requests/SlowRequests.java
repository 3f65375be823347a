package io.pmfs.cli.requests;

import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Locale;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * A line for each request that took long, but only so many in a minute: when the source is dead all
 * of them do. How many more there were is said when the minute is over. For one thread.
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

  /**
   * Nothing was slow yet.
   *
   * @param limit what takes at least so long is slow; zero if nothing is
   * @param lines takes what is to be said
   */
  public SlowRequests(Duration limit, InstantSource clock, Consumer<String> lines) {
    this.limit = limit;
    this.clock = clock;
    this.lines = lines;
  }

  /** How many nanoseconds are slow. */
  long leastNanos() {
    return limit.isZero() ? Long.MAX_VALUE : limit.toNanos();
  }

  /** Says that a request was slow, unless enough was said. */
  void tell(LogLine.Request request) {
    settle();
    if (windowEnd == null) {
      windowEnd = clock.instant().plus(WINDOW);
    }
    if (said < MOST_LINES) {
      said++;
      lines.accept(
          String.format(
              Locale.ROOT,
              "slow request: %s %s took %.3f s: %s",
              request.asker(),
              request.call(),
              request.micros() / 1e6,
              request.outcome()));
    } else {
      unsaid++;
    }
  }

  /** Says what was left unsaid, once the minute is over. */
  void settle() {
    Instant end = windowEnd;
    if (end != null && !clock.instant().isBefore(end)) {
      if (unsaid > 0) {
        lines.accept(
            String.format(
                Locale.ROOT,
                "slow requests: %,d more took at least %s s within a minute",
                unsaid,
                text(limit)));
      }
      windowEnd = null;
      said = 0;
      unsaid = 0;
    }
  }

  private static String text(Duration time) {
    long millis = time.toMillis();
    return millis % 1000 == 0
        ? Long.toString(millis / 1000)
        : String.format(Locale.ROOT, "%.3f", millis / 1e3);
  }

  /** Whether there is something to {@link #settle}. */
  boolean isUnsettled() {
    return unsaid > 0;
  }
}
