package io.pmfs.tier;

import java.io.IOException;

/** Why something cannot be used as a pool, and what to do about it: a line for the user. */
public final class PoolException extends IOException {
  private static final long serialVersionUID = 1L;

  public PoolException(String message) {
    super(message);
  }
}
