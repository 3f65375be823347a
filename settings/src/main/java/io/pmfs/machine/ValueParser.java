package io.pmfs.machine;

import java.time.Duration;
import java.util.List;
import java.util.function.Function;

/**
 * Parsers of single values. Each throws an IllegalArgumentException with a message for the user.
 */
public final class ValueParser {
  private static final long MIB = 1 << 20;

  private ValueParser() {}

  public static boolean flag(String text) {
    return switch (text) {
      case "true", "yes", "on", "1" -> true;
      case "false", "no", "off", "0" -> false;
      default -> throw new IllegalArgumentException("'" + text + "' is neither true nor false");
    };
  }

  public static Function<String, String> oneOf(List<String> known) {
    return text -> {
      if (!known.contains(text)) {
        throw new IllegalArgumentException(
            "'" + text + "' is not known; choose one of " + String.join(", ", known));
      }
      return text;
    };
  }

  /** A number from 1 to {@code most}. */
  public static Function<String, Integer> countTo(int most) {
    return text -> {
      int count = text.matches("\\d{1,6}") ? Integer.parseInt(text) : 0;
      if (count < 1 || count > most) {
        throw new IllegalArgumentException("'" + text + "' is not a number from 1 to " + most);
      }
      return count;
    };
  }

  /** A size in bytes of at least {@code leastMib} MiB. */
  public static Function<String, Long> memory(int leastMib) {
    return text -> {
      long bytes = ByteSize.parse(text);
      if (bytes < leastMib * MIB) {
        throw new IllegalArgumentException(
            "'" + text + "' is too small; give at least " + leastMib + "MiB");
      }
      return bytes;
    };
  }

  /** Bytes a second; zero for no limit. */
  public static long rate(String text) {
    if (text.equals("unlimited")) {
      return 0;
    }
    long bytes = ByteSize.parse(text);
    if (bytes < MIB) {
      throw new IllegalArgumentException("'" + text + "' is too slow; give at least 1MiB");
    }
    return bytes;
  }

  /** A duration; zero for off. */
  public static Duration timeOrOff(String text) {
    return text.equals("off") || text.equals("0") ? Duration.ZERO : TimeSpan.parse(text);
  }
}
