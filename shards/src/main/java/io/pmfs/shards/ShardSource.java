package io.pmfs.shards;

import io.pmfs.memory.DirectMemory;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Opens shards as a source: with an existing index that fits, or else with a new one. */
public final class ShardSource {
  private static final Logger log = LoggerFactory.getLogger(ShardSource.class);

  private ShardSource() {}

  /**
   * Opens a source.
   *
   * @param store contains the shards; stays open
   * @param indices paths of possible indexes; a new one is written to the last path
   * @param threads how many shards are read at once if the index has to be built
   * @param memory for reading shards
   * @throws ShardException if a shard is not a valid tar file, or the index cannot be written
   */
  public static ShardStore open(
      BackingStore store,
      ShardSet set,
      List<Path> indices,
      int threads,
      DirectMemory memory,
      Consumer<IndexProgress> progress)
      throws FsException, ShardException {
    ShardIndex before = null;
    for (Path place : indices) {
      if (before != null) {
        before.close();
      }
      before = openIndex(place);
      if (before != null && set.isIndexedBy(before)) {
        return new ShardStore(store, before, memory);
      }
    }
    Path place = indices.get(indices.size() - 1);
    IndexSummary summary;
    try (ShardIndex lender = before) {
      summary =
          new IndexBuilder(store, set.form(), threads, progress, memory).build(set, lender, place);
    }
    log.info("{}: indexed {} names in {} shards", place, summary.members(), summary.shards());
    try {
      return new ShardStore(store, ShardIndex.open(place), memory);
    } catch (IOException e) {
      throw new ShardException(place + ": the new index cannot be read: " + e.getMessage(), e);
    }
  }

  /**
   * Reopens the shards of a mount that continues, with the index that it started with.
   *
   * @param indices paths of possible indexes
   * @param fingerprint the {@link ShardStore#fingerprint} of the mount's first store
   * @param memory for reading shards
   * @return null if none of these paths has that index
   */
  public static @Nullable ShardStore reopen(
      BackingStore store, List<Path> indices, String fingerprint, DirectMemory memory) {
    for (Path place : indices) {
      ShardIndex index = openIndex(place);
      if (index != null && index.fingerprint().equals(fingerprint)) {
        return new ShardStore(store, index, memory);
      }
      if (index != null) {
        index.close();
      }
    }
    return null;
  }

  private static @Nullable ShardIndex openIndex(Path place) {
    if (!Files.exists(place)) {
      return null;
    }
    try {
      return ShardIndex.open(place);
    } catch (IOException e) {
      log.warn("{}: the index cannot be used: {}", place, e.getMessage());
      return null;
    }
  }
}
