package io.pmfs.compression;

import org.jspecify.annotations.Nullable;

/**
 * The bytes are not what the codec wrote, or not all of it. Checked, because any copy may be
 * damaged and its reader must be able to get the content elsewhere.
 */
public final class CodecException extends Exception {
  CodecException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
