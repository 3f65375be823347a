package io.pmfs.pack;

import io.pmfs.compression.ZstdCodec;
import org.jspecify.annotations.Nullable;

/**
 * How shards are compressed.
 *
 * @param level of zstd; 0 for no compression
 */
public record PackCompression(int level) {
  public static final PackCompression NONE = new PackCompression(0);
  public static final int DEFAULT_LEVEL = 3;
  private static final int MAX_LEVEL = 22;
  private static final String ZSTD = "zstd";

  /** Parses {@code none} or {@code zstd[:LEVEL]}. */
  public static PackCompression parse(String text) {
    if (text.equals("none")) {
      return NONE;
    }
    if (text.equals(ZSTD)) {
      return new PackCompression(DEFAULT_LEVEL);
    }
    if (text.matches(ZSTD + ":\\d{1,2}")) {
      int level = Integer.parseInt(text.substring(ZSTD.length() + 1));
      if (level >= 1 && level <= MAX_LEVEL) {
        return new PackCompression(level);
      }
    }
    throw new IllegalArgumentException(
        "'"
            + text
            + "' is not a compression; write none, zstd or zstd:LEVEL with LEVEL from 1 to "
            + MAX_LEVEL);
  }

  /** The suffix of a shard's name after .tar. */
  String suffix() {
    return level == 0 ? "" : ".zst";
  }

  /** The compressor, which the caller closes; null without compression. */
  @Nullable ZstdCodec codec() {
    return level == 0 ? null : new ZstdCodec(level);
  }

  @Override
  public String toString() {
    return level == 0 ? "none" : ZSTD + ":" + level;
  }
}
