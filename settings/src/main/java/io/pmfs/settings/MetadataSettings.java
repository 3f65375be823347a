package io.pmfs.settings;

import io.pmfs.machine.MountFailure;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * How pmfs keeps names and the list of copies.
 *
 * @param stateDirectory the directory that holds each dataset's state; by default with the last
 *     local tier; null only if no tier is on a local disk
 * @param memoryBytes the limit for cached names, at least 16 MiB
 */
public record MetadataSettings(@Nullable Path stateDirectory, long memoryBytes) {
  static MetadataSettings of(OptionValues values) throws MountFailure {
    return new MetadataSettings(
        values.findOwnPlace(MountOption.STATE_DIR), values.get(MountOption.METADATA_MEMORY));
  }
}
