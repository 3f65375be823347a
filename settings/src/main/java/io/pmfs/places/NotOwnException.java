package io.pmfs.places;

import java.nio.file.FileSystemException;
import java.nio.file.Path;

/**
 * Thrown for a path that another user could change; the reason names the component and the user.
 */
public final class NotOwnException extends FileSystemException {
  NotOwnException(Path path, String reason) {
    super(path.toString(), null, reason);
  }
}
