package io.pmfs.shards;

import io.pmfs.metadata.FileName;
import java.util.Arrays;
import java.util.List;

/** Recognises shards by their file names. */
final class ShardName {
  private static final List<String> SERVED = List.of(".tar", ".tar.zst");

  private static final List<String> COMPRESSED =
      List.of(".tgz", ".tar.gz", ".txz", ".tar.xz", ".tar.bz2", ".tbz2", ".tar.lz4", ".tzst");

  private ShardName() {}

  static boolean isShard(FileName name) {
    return SERVED.stream().anyMatch(ending -> hasEnding(name, ending));
  }

  /** Whether it is a tar file in a format that can only be read from its beginning. */
  static boolean isStream(FileName name) {
    return COMPRESSED.stream().anyMatch(ending -> hasEnding(name, ending));
  }

  static boolean isCompressed(FileName name) {
    return hasEnding(name, ".zst");
  }

  /** The directory that shows the content of a shard: its name without the suffix. */
  static FileName directory(FileName name) {
    for (String ending : SERVED) {
      if (hasEnding(name, ending)) {
        return FileName.of(Arrays.copyOf(name.bytes(), name.size() - ending.length()));
      }
    }
    return name;
  }

  /** The name must be longer than the suffix. */
  private static boolean hasEnding(FileName name, String ending) {
    int size = name.size() - ending.length();
    return size > 0 && name.toLatin1().endsWith(ending);
  }
}
