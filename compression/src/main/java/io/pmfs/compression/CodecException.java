package io.pmfs.compression;

import org.jspecify.annotations.Nullable;

/**
 * The bytes are not the complete output of the codec. Checked, because any copy may be damaged and
 * its reader must then get the content elsewhere.
 */
public final class CodecException extends Exception {
  CodecException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
