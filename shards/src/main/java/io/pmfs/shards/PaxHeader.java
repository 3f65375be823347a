package io.pmfs.shards;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.time.DateTimeException;
import java.time.Instant;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * The records of a pax extended header (POSIX pax, "pax Extended Header"), with values as bytes:
 * names in them should be UTF-8, but need not be. An invalid record throws
 * IllegalArgumentException.
 */
final class PaxHeader {
  static final PaxHeader NONE = new PaxHeader(Map.of());

  /** Python writes exponents, too. */
  private static final Pattern TIME =
      Pattern.compile("-?\\d{1,18}(\\.\\d{0,40})?([eE][-+]?\\d{1,2})?");

  private static final int MAX_DIGITS = 18;
  private static final int NANO_DIGITS = 9;
  private static final BigInteger NANOS = BigInteger.TEN.pow(NANO_DIGITS);

  private final Map<String, byte[]> values;

  /** The extents of a sparse file in format 0.0, which repeats its keys; null if there are none. */
  private final Extents.Builder extents = new Extents.Builder();

  private boolean hasExtents;
  private long sparseOffset;

  private PaxHeader(Map<String, byte[]> values) {
    this.values = values;
  }

  /** Parses records; takes missing values from {@code defaults}. */
  static PaxHeader parse(byte[] records, PaxHeader defaults) {
    PaxHeader header = new PaxHeader(new HashMap<>(defaults.values));
    int at = 0;
    // Some writers fill the last block with NUL and include that in the size.
    while (at < records.length && records[at] != 0) {
      at = header.record(records, at);
    }
    return header;
  }

  /** Parses "LENGTH KEY=VALUE ", where LENGTH counts the whole record. */
  private int record(byte[] records, int start) {
    int space = indexOf(records, ' ', start, Math.min(records.length, start + MAX_DIGITS));
    long length = number(Arrays.copyOfRange(records, start, space));
    int end = (int) Math.min(Integer.MAX_VALUE, start + length);
    if (end > records.length || end <= space + 1 || records[end - 1] != '\n') {
      throw new IllegalArgumentException("a record in an extended header has no end");
    }
    int equals = indexOf(records, '=', space + 1, end);
    String key = new String(records, space + 1, equals - space - 1, ISO_8859_1);
    put(key, Arrays.copyOfRange(records, equals + 1, end - 1));
    return end;
  }

  private void put(String key, byte[] value) {
    switch (key) {
      case "GNU.sparse.offset" -> sparseOffset = number(value);
      case "GNU.sparse.numbytes" -> {
        extents.add(sparseOffset, number(value));
        hasExtents = true;
      }
      case "path",
          "linkpath",
          "size",
          "uid",
          "gid",
          "mtime",
          "GNU.sparse.name",
          "GNU.sparse.map",
          "GNU.sparse.size",
          "GNU.sparse.realsize",
          "GNU.sparse.major",
          "GNU.sparse.minor" -> {
        // An empty value cancels the value of a global header.
        if (value.length == 0) {
          values.remove(key);
        } else {
          values.put(key, value);
        }
      }
      default -> {}
    }
  }

  byte @Nullable [] bytes(String key) {
    return values.get(key);
  }

  long number(String key, long otherwise) {
    byte[] value = values.get(key);
    return value == null ? otherwise : number(value);
  }

  /** Seconds with a fraction; digits below nanoseconds are rounded towards the past. */
  Instant time(String key, Instant otherwise) {
    byte[] value = values.get(key);
    if (value == null) {
      return otherwise;
    }
    String text = new String(value, ISO_8859_1);
    if (!TIME.matcher(text).matches()) {
      throw new IllegalArgumentException("a time in an extended header is not a number");
    }
    BigInteger[] parts =
        new BigDecimal(text)
            .setScale(NANO_DIGITS, RoundingMode.FLOOR)
            .unscaledValue()
            .divideAndRemainder(NANOS);
    try {
      return Instant.ofEpochSecond(parts[0].longValueExact(), parts[1].longValueExact());
    } catch (ArithmeticException | DateTimeException e) {
      throw new IllegalArgumentException("a time in an extended header is out of range", e);
    }
  }

  /** The extents that formats 0.0 and 0.1 list here; null if there are none. */
  Extents.@Nullable Builder extents() {
    byte[] map = values.get("GNU.sparse.map");
    if (map == null) {
      return hasExtents ? extents : null;
    }
    Extents.Builder pieces = new Extents.Builder();
    int at = 0;
    while (at < map.length) {
      int comma = indexOf(map, ',', at, map.length);
      int end = indexOfOrEnd(map, ',', comma + 1);
      pieces.add(
          number(Arrays.copyOfRange(map, at, comma)),
          number(Arrays.copyOfRange(map, comma + 1, end)));
      at = end + 1;
    }
    return pieces;
  }

  private static int indexOf(byte[] bytes, char wanted, int from, int to) {
    for (int i = from; i < to; i++) {
      if (bytes[i] == wanted) {
        return i;
      }
    }
    throw new IllegalArgumentException("an extended header is damaged");
  }

  private static int indexOfOrEnd(byte[] bytes, char wanted, int from) {
    int i = from;
    while (i < bytes.length && bytes[i] != wanted) {
      i++;
    }
    return i;
  }

  /** A decimal number of at most 18 digits. */
  static long number(byte[] digits) {
    if (digits.length == 0 || digits.length > MAX_DIGITS) {
      throw new IllegalArgumentException("a number in an extended header is malformed");
    }
    long number = 0;
    for (byte digit : digits) {
      if (digit < '0' || digit > '9') {
        throw new IllegalArgumentException("a number in an extended header is malformed");
      }
      number = 10 * number + digit - '0';
    }
    return number;
  }
}
