package io.pmfs.tier;

import java.nio.file.Path;

/**
 * The settings of a directory tier.
 *
 * @param name the tier's name, for example {@code ssd:/local/pmfs}
 * @param kind the kind of tier, for users
 * @param directory its directory for this dataset; created if absent
 * @param capacityBytes the most bytes that its copies may use
 * @param keepFreeBytes bytes to leave free on its disk, regardless of other users
 */
public record TierSettings(
    String name, String kind, Path directory, long capacityBytes, long keepFreeBytes) {
  public TierSettings {
    if (capacityBytes < 0 || keepFreeBytes < 0) {
      throw new IllegalArgumentException("tier " + name + ": sizes must not be negative");
    }
  }
}
