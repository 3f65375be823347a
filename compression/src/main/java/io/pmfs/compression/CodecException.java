package io.pmfs.compression;

import org.jspecify.annotations.Nullable;

/**
 * The bytes are not the complete output of the codec. A checked exception, because any copy may be
 * damaged; its reader must then read the content elsewhere.
 */
public final class CodecException extends Exception {
  CodecException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
