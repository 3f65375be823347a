package io.pmfs.stage.formats;

import java.util.Arrays;
import java.util.Locale;

/**
 * Whether copies are compressed, and how hard.
 *
 * @param level as for the zstd program, 1 to 19; ignored for {@link Mode#NONE}
 */
public record Compression(Mode mode, int level) {
  /** When to compress. */
  public enum Mode {
    /** Copies are raw. */
    NONE,
    /** All copies are compressed. */
    ZSTD,
    /** Copies that shrink are compressed, others are raw; see {@link Compressibility}. */
    AUTO;

    String word() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /** The syntax of {@link #parse}. */
  public static final String FORM = "none|zstd[:LEVEL]|auto[:LEVEL]";

  public static final Compression NONE = new Compression(Mode.NONE, 0);

  /** The zstd program's own default. */
  private static final int DEFAULT_LEVEL = 3;

  private static final int MAX_LEVEL = 19;

  public Compression {
    if (mode != Mode.NONE && (level < 1 || level > MAX_LEVEL)) {
      throw new IllegalArgumentException(
          "the level must be from 1 to " + MAX_LEVEL + ", not " + level);
    }
  }

  /** Parses {@code zstd:3}; throws IllegalArgumentException with a message for the user. */
  public static Compression parse(String text) {
    String[] parts = text.split(":", -1);
    Mode mode =
        Arrays.stream(Mode.values())
            .filter(m -> m.word().equals(parts[0]))
            .findFirst()
            .orElseThrow(() -> notOne(text));
    if (parts.length == 1) {
      return mode == Mode.NONE ? NONE : new Compression(mode, DEFAULT_LEVEL);
    }
    if (parts.length > 2 || mode == Mode.NONE || !parts[1].matches("\\d{1,4}")) {
      throw notOne(text);
    }
    return new Compression(mode, Integer.parseInt(parts[1]));
  }

  private static IllegalArgumentException notOne(String text) {
    return new IllegalArgumentException(
        "'" + text + "' is not a compression setting; use " + FORM + ", such as zstd:3");
  }

  @Override
  public String toString() {
    return mode == Mode.NONE ? mode.word() : mode.word() + ":" + level;
  }
}
