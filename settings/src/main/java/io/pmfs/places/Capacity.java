package io.pmfs.places;

import io.pmfs.machine.ByteSize;
import java.util.Locale;

/**
 * An amount of a disk: either bytes, or a share of the whole disk.
 *
 * @param bytes the amount; not used when {@code percent} is
 * @param percent the share in percent, or a negative number when the amount is in bytes
 */
public record Capacity(long bytes, double percent) {
  public static final Capacity WHOLE_DISK = ofPercent(100);

  public static Capacity ofBytes(long bytes) {
    return new Capacity(bytes, -1);
  }

  public static Capacity ofPercent(double percent) {
    return new Capacity(0, percent);
  }

  /**
   * Parses {@code 200G} or {@code 80%}; throws IllegalArgumentException with a message for the
   * user.
   */
  public static Capacity parse(String text) {
    String trimmed = text.trim();
    if (!trimmed.endsWith("%")) {
      return ofBytes(ByteSize.parse(trimmed));
    }
    String number = trimmed.substring(0, trimmed.length() - 1).trim();
    if (!number.matches("\\d{1,3}(\\.\\d{1,6})?") || Double.parseDouble(number) > 100) {
      throw new IllegalArgumentException("'" + text + "' is not a share between 0% and 100%");
    }
    return ofPercent(Double.parseDouble(number));
  }

  boolean isPercent() {
    return percent >= 0;
  }

  /** The amount in bytes on a disk of this size. */
  public long on(long diskBytes) {
    return isPercent() ? (long) (diskBytes * (percent / 100)) : bytes;
  }

  @Override
  public String toString() {
    if (!isPercent()) {
      return ByteSize.format(bytes);
    }
    return percent == Math.rint(percent)
        ? String.format(Locale.ROOT, "%.0f%%", percent)
        : percent + "%";
  }
}
