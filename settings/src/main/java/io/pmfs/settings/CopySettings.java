package io.pmfs.settings;

import io.pmfs.machine.MountFailure;
import io.pmfs.places.Capacity;
import io.pmfs.places.TierSpec;
import io.pmfs.stage.formats.Compression;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Where and how pmfs keeps copies.
 *
 * @param tiers fastest first; none only if the cache of the node is used
 * @param keepFree the space to leave free on each tier's disk
 * @param requireDax whether a pm tier must be directly mappable persistent memory
 * @param compression how copies are stored in tiers without a compression of their own
 * @param eviction {@code none} or {@code lru}
 * @param fetchThreads 1 to 256
 * @param bufferMemoryBytes at least 8 MiB
 */
public record CopySettings(
    List<TierSpec> tiers,
    Capacity keepFree,
    boolean requireDax,
    Compression compression,
    String eviction,
    int fetchThreads,
    long bufferMemoryBytes) {
  public CopySettings {
    tiers = List.copyOf(tiers);
  }

  static CopySettings of(OptionValues values) throws MountFailure {
    return new CopySettings(
        tiers(values),
        values.get(MountOption.KEEP_FREE),
        values.get(MountOption.REQUIRE_DAX),
        values.get(MountOption.COMPRESSION),
        values.get(MountOption.EVICTION),
        values.get(MountOption.FETCH_THREADS),
        values.get(MountOption.BUFFER_MEMORY));
  }

  /** The tiers at their places; two tiers cannot share a place. */
  public static List<TierSpec> tiers(OptionValues values) throws MountFailure {
    List<String> texts = values.texts(MountOption.TIER);
    List<TierSpec> given = values.get(MountOption.TIER);
    List<TierSpec> tiers = new ArrayList<>();
    for (int i = 0; i < given.size(); i++) {
      Path path = values.ownPlaceOf(MountOption.TIER, given.get(i).path());
      if (tiers.stream().anyMatch(other -> other.path().equals(path))) {
        throw MountFailure.usage("--tier " + texts.get(i) + ": this directory is already a tier");
      }
      tiers.add(given.get(i).at(path));
    }
    return tiers;
  }
}
