package io.pmfs.stage.formats;

import java.io.IOException;

/** A copy does not match its record. */
public final class MismatchException extends IOException {
  MismatchException(String message) {
    super(message);
  }
}
