package io.pmfs.places;

import io.pmfs.machine.MountFailure;
import io.pmfs.tier.Tier;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The place of one tier: how it is checked, examined, opened and emptied. Each {@link TierKind}
 * makes its own; no other code depends on the type of a place.
 */
public interface TierPlace {
  /**
   * The directory that holds the copies as files and may hold other files; null if there is none.
   * It may not exist yet.
   */
  default @Nullable Path directory() {
    return null;
  }

  /**
   * Checks the place before a mount, and creates missing directories.
   *
   * @param keepFree the space that must stay free on its disk
   * @param user the future owner of a directory that only root can create; null for this process's
   *     user
   * @throws MountFailure with one line that names a remedy
   */
  void check(Capacity keepFree, @Nullable String user) throws MountFailure;

  /**
   * Examines the place for {@code pmfs doctor}; changes nothing.
   *
   * @throws MountFailure with one line, if it cannot be used
   */
  Examined examine(Capacity keepFree) throws MountFailure;

  /**
   * The result of examining a usable place.
   *
   * @param takesCopies whether new copies find room
   * @param text a description, and a remedy if there is no room
   */
  record Examined(boolean takesCopies, String text) {}

  /**
   * Opens the tier.
   *
   * @throws IOException if the place cannot be read or written
   * @throws MountFailure for other reasons, with one line
   */
  Tier open(Opening opening) throws IOException, MountFailure;

  /**
   * The mount that a tier is opened for.
   *
   * @param dataset the dataset whose copies the tier holds
   * @param source the path of its source, for users
   * @param keepFree the space that must stay free on its disk
   * @param state the directory with the records of copies, perhaps on the same disk; null if none
   * @param usage the counts of the last clean stop; null if unknown
   */
  record Opening(
      String dataset,
      Path source,
      Capacity keepFree,
      @Nullable Path state,
      Tier.@Nullable Usage usage) {}

  /**
   * The datasets with directories here, mounted or not. A pool has none.
   *
   * @throws IOException if the place cannot be read
   */
  default List<StoredDataset> stored() throws IOException {
    return List.of();
  }

  /**
   * Removes all copies of a dataset, unless a mount uses them.
   *
   * @return false, with nothing removed, if a mount uses them
   * @throws IOException if some may remain
   */
  boolean purge(String dataset) throws IOException;

  /**
   * Initialises the place for {@code --format}, whatever its content.
   *
   * @return false if this kind of place has no format; nothing was changed then
   */
  default boolean format() throws MountFailure {
    return false;
  }

  /**
   * A similar tier for a concurrent mount of the same dataset.
   *
   * @param name unique for each such mount
   * @throws MountFailure with one line, if this kind of place does not allow it
   */
  TierSpec apart(String name) throws MountFailure;

  /**
   * Initialises the places of all tiers that have a format.
   *
   * @throws MountFailure if there are none, or one of them cannot be written
   */
  static void format(List<TierSpec> tiers) throws MountFailure {
    boolean isAnyFormatted = false;
    for (TierSpec tier : tiers) {
      isAnyFormatted |= tier.place().format();
    }
    if (!isAnyFormatted) {
      throw MountFailure.usage(
          "--format: no --tier is a dax device or a file, so there is no pool; leave it out");
    }
  }
}
