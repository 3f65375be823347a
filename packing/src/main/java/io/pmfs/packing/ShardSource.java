package io.pmfs.packing;

import io.pmfs.tier.BackingStore;
import io.pmfs.tier.DirectMemory;
import io.pmfs.tier.FsException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Opens shards as a source: with an index that is there and fits, else with one that it builds. */
public final class ShardSource {
  private static final Logger log = LoggerFactory.getLogger(ShardSource.class);

  private ShardSource() {}

  /**
   * Opens a source.
   *
   * @param store which the shards are in; stays open
   * @param indices where an index may be; the last place is ours to write to
   * @param threads how many shards are read at once if the index has to be built
   * @param memory for what is read of shards
   * @throws ShardException if a shard is no sound tar file, or the index cannot be written
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
      before = read(place);
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
    log.info("{}: index of {} names in {} shards", place, summary.members(), summary.shards());
    try {
      return new ShardStore(store, ShardIndex.open(place), memory);
    } catch (IOException e) {
      throw new ShardException(
          place + ": the index was written and cannot be read: " + e.getMessage(), e);
    }
  }

  /**
   * Opens the shards of a mount that goes on, as they were: by the index that it began with.
   *
   * @param indices where it may be
   * @param fingerprint the {@link ShardStore#fingerprint} of the mount's first store
   * @param memory for what is read of shards
   * @return null if the index is in none of these places
   */
  public static @Nullable ShardStore reopen(
      BackingStore store, List<Path> indices, String fingerprint, DirectMemory memory) {
    for (Path place : indices) {
      ShardIndex index = read(place);
      if (index != null && index.fingerprint().equals(fingerprint)) {
        return new ShardStore(store, index, memory);
      }
      if (index != null) {
        index.close();
      }
    }
    return null;
  }

  private static @Nullable ShardIndex read(Path place) {
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
