package io.pmfs.tier;

import java.io.IOException;

/** Something cannot be used as a pool. The message is one line: why, and what the user can do. */
public final class PoolException extends IOException {
  public PoolException(String message) {
    super(message);
  }
}
