package io.pmfs.tier;

import java.io.IOException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Creates a tier's bundles and finds those of earlier sessions. */
interface BundleStore {
  /** All existing bundles, in the order of their creation. */
  List<StoredBundle> list() throws IOException;

  /** Creates an empty bundle; null if there is no room for another. */
  @Nullable StoredBundle create() throws IOException;
}
