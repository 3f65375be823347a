package io.pmfs.metadata;

import org.jspecify.annotations.Nullable;

/**
 * The namespace could not be opened, read or written. The message is one line and says what to do.
 */
public final class NamespaceException extends RuntimeException {
  public NamespaceException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
