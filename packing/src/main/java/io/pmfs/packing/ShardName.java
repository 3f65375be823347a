package io.pmfs.packing;

import io.pmfs.metadata.FileName;
import java.util.Arrays;
import java.util.List;

/** What the name of a file says about it being a shard. */
final class ShardName {
  private static final List<String> SERVED = List.of(".tar", ".tar.zst");

  private static final List<String> COMPRESSED =
      List.of(".tgz", ".tar.gz", ".txz", ".tar.xz", ".tar.bz2", ".tbz2", ".tar.lz4", ".tzst");

  private ShardName() {}

  static boolean isShard(FileName name) {
    return SERVED.stream().anyMatch(ending -> hasEnding(name, ending));
  }

  /** Whether it is a tar file in a form that can only be read from its beginning. */
  static boolean isStream(FileName name) {
    return COMPRESSED.stream().anyMatch(ending -> hasEnding(name, ending));
  }

  static boolean isCompressed(FileName name) {
    return hasEnding(name, ".zst");
  }

  /** The directory that shows what is in a shard: its name without the ending. */
  static FileName directory(FileName name) {
    for (String ending : SERVED) {
      if (hasEnding(name, ending)) {
        return FileName.of(Arrays.copyOf(name.bytes(), name.size() - ending.length()));
      }
    }
    return name;
  }

  /** Something has to stand before the ending. */
  private static boolean hasEnding(FileName name, String ending) {
    int size = name.size() - ending.length();
    return size > 0 && name.toLatin1().endsWith(ending);
  }
}
