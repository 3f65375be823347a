package io.pmfs.stage.formats;

import java.io.IOException;

/** A nearly complete copy found no room for the last step. */
public final class NoRoomException extends IOException {
  NoRoomException(String message) {
    super(message);
  }
}
