package io.pmfs.stage.copies;

import io.pmfs.metadata.CopyRecord;
import io.pmfs.stage.formats.CopyFormat;

/**
 * The known location of an inode's copy, in one byte: the kind of copy, and the index of its tier,
 * fastest first.
 */
final class Whereabouts {
  /** Not asked for yet. */
  static final byte UNSEEN = 0;

  static final byte NOWHERE = 1;

  /** Nowhere, because the copy was of another version. */
  static final byte OUTDATED = 2;

  /** Must be looked up in the records. */
  static final byte UNKNOWN = 3;

  static final int MAX_TIERS = 16;

  // The kinds; the tier's index is added.
  private static final byte FILE = 16;
  private static final byte VERIFIED_FILE = 32;
  private static final byte BUNDLED = 48;
  private static final byte VERIFIED_BUNDLED = 64;

  /** Compressed copies are verified at every read, so no state of verification is needed. */
  private static final byte COMPRESSED = 80;

  private Whereabouts() {}

  /** The state of a recorded copy. */
  static byte recorded(CopyRecord copy, int tierIndex) {
    if (copy.codec() != CopyFormat.RAW) {
      return (byte) (COMPRESSED + tierIndex);
    }
    return (byte) ((copy.extent() == null ? FILE : BUNDLED) + tierIndex);
  }

  /** The state of a copy written in this session. */
  static byte written(CopyRecord copy, int tierIndex) {
    return verified(recorded(copy, tierIndex));
  }

  /** The state of the same copy after it was completely verified. */
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

  static boolean isVerified(byte state) {
    return kind(state) == VERIFIED_FILE || kind(state) == VERIFIED_BUNDLED;
  }

  /** Whether the copy is a raw file, which the kernel can read without pmfs. */
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
