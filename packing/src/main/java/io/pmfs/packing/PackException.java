package io.pmfs.packing;

import org.jspecify.annotations.Nullable;

/** A pack that is not begun or not gone on with. The message is one line and says what to do. */
public final class PackException extends Exception {
  public PackException(String message) {
    this(message, null);
  }

  public PackException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
