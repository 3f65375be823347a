package io.pmfs.pack;

import java.util.Locale;

/**
 * The order of files in shards.
 *
 * @param seed of a shuffle; 0 for the other kinds
 */
public record PackOrder(Kind kind, long seed) {
  public enum Kind {
    /** Directory by directory, with the files of a sample next to each other. */
    NAME,
    SIZE,
    /** Samples in an order that depends only on the seed and the names. */
    SHUFFLE
  }

  private static final String SHUFFLE = "shuffle:";

  /** Parses {@code name}, {@code size} or {@code shuffle:SEED}. */
  public static PackOrder parse(String text) {
    if (text.equals("name")) {
      return new PackOrder(Kind.NAME, 0);
    }
    if (text.equals("size")) {
      return new PackOrder(Kind.SIZE, 0);
    }
    if (text.matches(SHUFFLE + "-?\\d{1,18}")) {
      return new PackOrder(Kind.SHUFFLE, Long.parseLong(text.substring(SHUFFLE.length())));
    }
    throw new IllegalArgumentException(
        "'" + text + "' is not an order; write name, size or shuffle:SEED with a number");
  }

  @Override
  public String toString() {
    return kind == Kind.SHUFFLE ? SHUFFLE + seed : kind.name().toLowerCase(Locale.ROOT);
  }
}
