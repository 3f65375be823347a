package io.pmfs.stage;

import java.io.IOException;

/** A copy's content is not what was recorded. */
final class MismatchException extends IOException {
  private static final long serialVersionUID = 1;

  MismatchException(String message) {
    super(message);
  }
}
