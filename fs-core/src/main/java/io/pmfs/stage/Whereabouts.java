package io.pmfs.stage;

import io.pmfs.metadata.CopyRecord;

/**
 * What is known of where the copy of an inode is, in a byte. A tier by its index, fastest first.
 */
final class Whereabouts {
  /** To be looked up in the records. */
  static final byte UNKNOWN = 0;

  static final byte NOWHERE = 1;

  /** Nowhere, because what there was is of another version. */
  static final byte OUTDATED = 2;

  private static final byte IN_TIER = 3;
  private static final byte VERIFIED = 43;

  /** Compressed ones are compared at every read, so it does not matter whether they ever were. */
  private static final byte COMPRESSED = 83;

  static final int MAX_TIERS = VERIFIED - IN_TIER;

  private Whereabouts() {}

  /** That of a copy which the records name. */
  static byte recorded(CopyRecord copy, int tierIndex) {
    return copy.codec() == CopyFormat.RAW ? unverified(tierIndex) : (byte) (COMPRESSED + tierIndex);
  }

  /** That of a copy which was written in this session. */
  static byte written(CopyRecord copy, int tierIndex) {
    return copy.codec() == CopyFormat.RAW ? verified(tierIndex) : recorded(copy, tierIndex);
  }

  static byte unverified(int tierIndex) {
    return (byte) (IN_TIER + tierIndex);
  }

  static byte verified(int tierIndex) {
    return (byte) (VERIFIED + tierIndex);
  }

  static boolean isInTier(byte state) {
    return state >= IN_TIER;
  }

  /** Whether all of a raw copy was compared with its checksums. */
  static boolean isVerified(byte state) {
    return state >= VERIFIED && state < COMPRESSED;
  }

  static boolean isCompressed(byte state) {
    return state >= COMPRESSED;
  }

  static int tierIndex(byte state) {
    if (isCompressed(state)) {
      return state - COMPRESSED;
    }
    return isVerified(state) ? state - VERIFIED : state - IN_TIER;
  }
}
