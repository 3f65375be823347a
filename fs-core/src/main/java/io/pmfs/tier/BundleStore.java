package io.pmfs.tier;

import java.io.IOException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Makes a tier's bundles and finds those of earlier sessions. */
interface BundleStore {
  /** All that are there, in the order they were made. */
  List<StoredBundle> list() throws IOException;

  /** Makes an empty one; null if there is no room for another. */
  @Nullable StoredBundle create() throws IOException;
}
