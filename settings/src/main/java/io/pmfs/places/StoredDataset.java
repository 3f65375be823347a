package io.pmfs.places;

import java.nio.file.Path;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * The content of one place for a dataset: its copies in a tier, or its state.
 *
 * @param dataset the name of the dataset's directory, unique for each source
 * @param source the path of the source; null if not recorded here
 * @param where the directory or the pool, for users
 * @param what {@code ssd}, {@code pm} or {@code state}
 * @param bytes bytes used on the disk
 * @param lastUsed when a mount last opened or closed it
 * @param isInUse whether a mount uses it now
 * @param isUnsaved whether it may hold files that are not at the source
 */
public record StoredDataset(
    String dataset,
    @Nullable String source,
    Path where,
    String what,
    long bytes,
    Instant lastUsed,
    boolean isInUse,
    boolean isUnsaved) {
  /** The {@link #what} of a state directory. */
  public static final String STATE = "state";
}
