package io.pmfs.stage;

import io.pmfs.metadata.CopyRecord;

/**
 * What is known of where the copy of an inode is, in a byte: what kind of copy, and in which tier
 * by its index, fastest first.
 */
final class Whereabouts {
  /** To be looked up in the records. */
  static final byte UNKNOWN = 0;

  static final byte NOWHERE = 1;

  /** Nowhere, because what there was is of another version. */
  static final byte OUTDATED = 2;

  static final int MAX_TIERS = 16;

  // The kinds; the tier's index is added.
  private static final byte FILE = 16;
  private static final byte VERIFIED_FILE = 32;
  private static final byte BUNDLED = 48;
  private static final byte VERIFIED_BUNDLED = 64;

  /** Compressed ones are compared at every read, so it does not matter whether they ever were. */
  private static final byte COMPRESSED = 80;

  private Whereabouts() {}

  /** That of a copy which the records name. */
  static byte recorded(CopyRecord copy, int tierIndex) {
    if (copy.codec() != CopyFormat.RAW) {
      return (byte) (COMPRESSED + tierIndex);
    }
    return (byte) ((copy.extent() == null ? FILE : BUNDLED) + tierIndex);
  }

  /** That of a copy which was written in this session. */
  static byte written(CopyRecord copy, int tierIndex) {
    return verified(recorded(copy, tierIndex));
  }

  /** That of the same copy, once all of it was compared. */
  static byte verified(byte state) {
    return switch (kind(state)) {
      case FILE -> (byte) (VERIFIED_FILE + tierIndex(state));
      case BUNDLED -> (byte) (VERIFIED_BUNDLED + tierIndex(state));
      default -> state;
    };
  }

  static boolean isInTier(byte state) {
    return state >= FILE;
  }

  /** Whether all of a raw copy was compared with its checksums. */
  static boolean isVerified(byte state) {
    return kind(state) == VERIFIED_FILE || kind(state) == VERIFIED_BUNDLED;
  }

  /** Whether it is raw and a file, which the kernel can read without us. */
  static boolean isRawFile(byte state) {
    return kind(state) == FILE || kind(state) == VERIFIED_FILE;
  }

  static int tierIndex(byte state) {
    return state % MAX_TIERS;
  }

  private static byte kind(byte state) {
    return (byte) (state - tierIndex(state));
  }
}
