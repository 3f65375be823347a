package io.pmfs.machine;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Sizes as people write them. {@code K M G T P} and {@code KiB MiB …} are powers of 1024, {@code KB
 * MB …} are powers of 1000, a number without a unit is bytes.
 */
public final class ByteSize {
  private static final Pattern FORM = Pattern.compile("(\\d+(?:\\.\\d+)?)\\s*([A-Za-z]*)");
  private static final Map<Character, Integer> POWERS =
      Map.of('K', 1, 'M', 2, 'G', 3, 'T', 4, 'P', 5);
  private static final String[] UNITS = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};

  private ByteSize() {}

  /** Parses a size or throws IllegalArgumentException with a message fit for the user. */
  public static long parse(String text) {
    Matcher matcher = FORM.matcher(text.trim());
    if (!matcher.matches()) {
      throw notASize(text);
    }
    BigDecimal bytes =
        new BigDecimal(matcher.group(1)).multiply(BigDecimal.valueOf(unit(matcher.group(2), text)));
    if (bytes.compareTo(BigDecimal.valueOf(Long.MAX_VALUE)) > 0) {
      throw new IllegalArgumentException("'" + text + "' is too large");
    }
    return bytes.setScale(0, RoundingMode.DOWN).longValueExact();
  }

  private static long unit(String unit, String text) {
    String upper = unit.toUpperCase(Locale.ROOT);
    if (upper.isEmpty() || upper.equals("B")) {
      return 1;
    }
    Integer power = POWERS.get(upper.charAt(0));
    String rest = upper.substring(1);
    if (power == null || !(rest.isEmpty() || rest.equals("B") || rest.equals("IB"))) {
      throw notASize(text);
    }
    long base = rest.equals("B") ? 1000 : 1024;
    long result = 1;
    for (int i = 0; i < power; i++) {
      result *= base;
    }
    return result;
  }

  private static IllegalArgumentException notASize(String text) {
    return new IllegalArgumentException(
        "'"
            + text
            + "' is not a size; write it as 200G, 64MiB (powers of 1024) or 200GB (of 1000)");
  }

  /** A size for people: three digits and a unit of 1024. */
  public static String format(long bytes) {
    if (bytes < 1024) {
      return bytes + " B";
    }
    double value = bytes;
    int unit = 0;
    while (value >= 1023.95 && unit < UNITS.length - 1) {
      value /= 1024;
      unit++;
    }
    return String.format(Locale.ROOT, value < 99.95 ? "%.1f %s" : "%.0f %s", value, UNITS[unit]);
  }
}
