package io.pmfs.writable.remote;

import java.io.IOException;

/** A request was not sent, or not accepted, because too many others wait at the same node. */
public final class BusyException extends IOException {
  public BusyException(String message, Throwable cause) {
    super(message, cause);
  }
}
