package io.pmfs.places;

import java.nio.file.Path;
import java.time.Instant;
import org.jspecify.annotations.Nullable;

/**
 * What one place holds of a dataset: its copies in a tier, or its state.
 *
 * @param dataset the name of the dataset's directory, unique for each source
 * @param source the path of the source; null if this place does not know it
 * @param where the directory or the pool, for users
 * @param what {@code ssd}, {@code pm} or {@code state}
 * @param bytes how much of the disk it takes
 * @param lastUsed when a mount last began or ended to use it
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
  /** What a state directory is called. */
  public static final String STATE = "state";
}
