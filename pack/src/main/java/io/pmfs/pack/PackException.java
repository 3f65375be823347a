package io.pmfs.pack;

import org.jspecify.annotations.Nullable;

/** The pack cannot be started or continued. The message is one line and says what to do. */
public final class PackException extends Exception {
  public PackException(String message) {
    this(message, null);
  }

  public PackException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
