package io.pmfs.table;

import org.jspecify.annotations.Nullable;

/** A state could not be opened, read or written. The message is one line and says what to do. */
public class StateException extends RuntimeException {
  /** How to treat a state that could not be opened. */
  public enum Kind {
    /** The state belongs to another dataset: the user has to name a different directory. */
    REFUSED,
    /** Another process has the state open: the user has to name a different directory. */
    IN_USE,
    /** The state is damaged, or has an unknown format. */
    DAMAGED,
    NEWER,
    /** The disk of the state failed an operation. */
    UNAVAILABLE
  }

  private final Kind kind;

  public StateException(String message, @Nullable Throwable cause) {
    this(message, cause, Kind.REFUSED);
  }

  public StateException(String message, @Nullable Throwable cause, Kind kind) {
    super(message, cause);
    this.kind = kind;
  }

  public boolean isInUse() {
    return kind == Kind.IN_USE;
  }

  public Kind kind() {
    return kind;
  }
}
