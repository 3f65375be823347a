package io.pmfs.settings;

import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * How names and the list of copies are kept.
 *
 * @param stateDirectory below which every dataset has its own state; with the last local tier when
 *     not configured; null only when no tier is on a local disk
 * @param memoryBytes for cached names, at least 16 MiB
 */
public record MetadataSettings(@Nullable Path stateDirectory, long memoryBytes) {
  static MetadataSettings of(OptionValues values) throws MountFailure {
    return new MetadataSettings(
        values.findPlace(MountOption.STATE_DIR), values.get(MountOption.METADATA_MEMORY));
  }
}
