package io.pmfs.tier;

import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Creates a tier's bundles and finds those of earlier sessions. */
interface BundleStore {
  /** All existing bundles, in the order of their creation. */
  List<StoredBundle> list() throws IOException;

  /** Creates an empty bundle; null if there is no room for another. */
  @Nullable StoredBundle create() throws IOException;

  /**
   * Adds a bundle of another process, by a hard link to its file; null if this store has no files.
   */
  default @Nullable StoredBundle link(Path file) throws IOException {
    return null;
  }
}
