package io.pmfs.tier;

import java.nio.file.FileSystemException;
import java.nio.file.Path;

/** Another mount of the same dataset has the tier's directory. */
public final class TierInUseException extends FileSystemException {
  TierInUseException(Path directory) {
    super(directory.toString(), null, "in use by another mount of the same dataset");
  }
}
