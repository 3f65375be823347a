package io.pmfs.machine;

import java.time.Duration;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Durations as people write them: {@code 500ms}, {@code 30s}, {@code 2m}, {@code 1h}. */
public final class TimeSpan {
  private static final Pattern FORM = Pattern.compile("(\\d{1,9})\\s*(ms|s|m|h|d)");

  private TimeSpan() {}

  /** Parses a duration or throws IllegalArgumentException with a message fit for the user. */
  public static Duration parse(String text) {
    Matcher matcher = FORM.matcher(text.trim().toLowerCase(Locale.ROOT));
    if (!matcher.matches()) {
      throw new IllegalArgumentException(
          "'" + text + "' is not a duration; write it as 500ms, 30s, 2m or 1h");
    }
    long count = Long.parseLong(matcher.group(1));
    return switch (matcher.group(2)) {
      case "ms" -> Duration.ofMillis(count);
      case "s" -> Duration.ofSeconds(count);
      case "m" -> Duration.ofMinutes(count);
      case "h" -> Duration.ofHours(count);
      default -> Duration.ofDays(count);
    };
  }

  /** Like {@link #parse}, but rejects zero. */
  public static Duration parsePositive(String text) {
    Duration span = parse(text);
    if (span.isZero()) {
      throw new IllegalArgumentException("'" + text + "': a duration must be longer than zero");
    }
    return span;
  }

  /** A duration for people: the two largest units. */
  public static String format(Duration span) {
    long seconds = span.toSeconds();
    if (seconds < 60) {
      return seconds + "s";
    }
    if (seconds < 3600) {
      return seconds / 60 + "m " + seconds % 60 + "s";
    }
    if (seconds < 86_400) {
      return seconds / 3600 + "h " + seconds % 3600 / 60 + "m";
    }
    return seconds / 86_400 + "d " + seconds % 86_400 / 3600 + "h";
  }
}
