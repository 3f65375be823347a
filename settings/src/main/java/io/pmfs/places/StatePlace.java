package io.pmfs.places;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A state directory, with one directory below it for each dataset. */
public final class StatePlace {
  /** The file that RocksDB locks while the state is open. */
  private static final String LOCK = "LOCK";

  private StatePlace() {}

  public static List<StoredDataset> stored(Path place) throws IOException {
    List<StoredDataset> stored = new ArrayList<>();
    for (DatasetDirectory directory : DatasetDirectory.below(place, LOCK)) {
      stored.add(directory.stored(StoredDataset.STATE));
    }
    return stored;
  }

  /** Removes the state of a dataset; false if a mount uses it. */
  public static boolean purge(Path place, String dataset) throws IOException {
    return new DatasetDirectory(place.resolve(dataset), LOCK).purge();
  }
}
