package io.pmfs.tier;

import java.io.IOException;

/** Something cannot be used as a pool. The message is one line: why, and what the user can do. */
public final class PoolException extends IOException {
  private static final long serialVersionUID = 1L;

  public PoolException(String message) {
    super(message);
  }
}
