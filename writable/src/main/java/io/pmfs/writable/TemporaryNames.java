package io.pmfs.writable;

import io.pmfs.metadata.FileName;
import java.nio.charset.StandardCharsets;

/** Names of unfinished files at the source, which the mount hides and rejects. */
public final class TemporaryNames {
  public static final String PREFIX = ".pmfs-tmp-";

  private static final byte[] BYTES = PREFIX.getBytes(StandardCharsets.US_ASCII);

  private TemporaryNames() {}

  public static boolean contains(FileName name) {
    byte[] bytes = name.bytes();
    if (bytes.length < BYTES.length) {
      return false;
    }
    for (int i = 0; i < BYTES.length; i++) {
      if (bytes[i] != BYTES[i]) {
        return false;
      }
    }
    return true;
  }
}
