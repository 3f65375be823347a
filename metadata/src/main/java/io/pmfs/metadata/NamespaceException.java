package io.pmfs.metadata;

import org.jspecify.annotations.Nullable;

/**
 * The namespace could not be opened, read or written. The message is one line and says what to do.
 */
public final class NamespaceException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final boolean inUse;

  public NamespaceException(String message, @Nullable Throwable cause) {
    this(message, cause, false);
  }

  NamespaceException(String message, @Nullable Throwable cause, boolean inUse) {
    super(message, cause);
    this.inUse = inUse;
  }

  /** Whether another process has it open. */
  public boolean isInUse() {
    return inUse;
  }
}
