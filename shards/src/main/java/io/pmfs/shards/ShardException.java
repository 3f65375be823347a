package io.pmfs.shards;

import org.jspecify.annotations.Nullable;

/** The shards cannot be served. The message is one line, with a cause or a remedy. */
public final class ShardException extends Exception {
  public ShardException(String message) {
    this(message, null);
  }

  public ShardException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
