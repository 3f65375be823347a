package io.pmfs.compression;

import org.jspecify.annotations.Nullable;

/**
 * Bytes that are not what the codec wrote, or not all of it. Checked, because it is to be expected
 * of any copy and its reader has to have another way to the content.
 */
public final class CodecException extends Exception {
  CodecException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
