package io.pmfs.fuse.mounting;

import org.jspecify.annotations.Nullable;

/** Mounting or unmounting failed. The message is one line with the cause and a remedy. */
public final class MountException extends Exception {
  private final Reason reason;

  /** The kind of failure. */
  public enum Reason {
    /** This machine or user cannot mount with this bridge. */
    UNAVAILABLE,
    /** The mount is in use. */
    BUSY,
    /** Any other failure. */
    FAILED
  }

  public MountException(Reason reason, String message, @Nullable Throwable cause) {
    super(message, cause);
    this.reason = reason;
  }

  public Reason reason() {
    return reason;
  }
}
