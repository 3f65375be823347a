package io.pmfs.shards;

import io.pmfs.memory.DirectMemory;
import io.pmfs.metadata.FileName;
import java.nio.file.Path;
import java.util.Arrays;

/** Indexes of shards in a directory. */
final class BackingStores {
  private BackingStores() {}

  static IndexSummary build(Path directory, IndexForm form, Path index, String... shards)
      throws Exception {
    return new IndexBuilder(
            new PlainDirectory(directory), form, 4, progress -> {}, new DirectMemory())
        .build(Arrays.stream(shards).map(FileName::of).toList(), index);
  }
}
