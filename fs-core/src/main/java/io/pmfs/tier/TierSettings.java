package io.pmfs.tier;

import java.nio.file.Path;

/**
 * What a directory tier is told.
 *
 * @param name how it is known, for example {@code ssd:/local/pmfs}
 * @param directory its own directory for this dataset; made if absent
 * @param capacityBytes the most that its copies may take
 * @param keepFreeBytes what is left free on its disk, whoever uses the rest
 */
public record TierSettings(
    String name, TierKind kind, Path directory, long capacityBytes, long keepFreeBytes) {
  public TierSettings {
    if (capacityBytes < 0 || keepFreeBytes < 0) {
      throw new IllegalArgumentException("tier " + name + ": sizes must not be negative");
    }
  }
}
