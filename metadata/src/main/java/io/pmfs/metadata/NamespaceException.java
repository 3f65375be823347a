package io.pmfs.metadata;

import org.jspecify.annotations.Nullable;

/**
 * The namespace could not be opened, read or written. The message is one line and says what to do.
 */
public class NamespaceException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** What follows for a state that is to be opened. */
  enum Kind {
    /** It is another's: the user is to name a different one. */
    REFUSED,
    /** The same, and that one has it open. */
    IN_USE,
    /** It is not what was written, or of a format that is not known here. */
    DAMAGED,
    NEWER,
    /** Its disk does not do what is asked. */
    UNAVAILABLE
  }

  private final Kind kind;

  public NamespaceException(String message, @Nullable Throwable cause) {
    this(message, cause, Kind.REFUSED);
  }

  NamespaceException(String message, @Nullable Throwable cause, Kind kind) {
    super(message, cause);
    this.kind = kind;
  }

  /** Whether another process has it open. */
  public boolean isInUse() {
    return kind == Kind.IN_USE;
  }

  Kind kind() {
    return kind;
  }
}
