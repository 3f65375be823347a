package io.pmfs.shards;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * The sort key of members while an index is built: the key of a name, followed by the place of the
 * member with that name, or of a link to it. The two NULs between them sort before any name below
 * the first.
 */
final class SortKey {
  private static final int PLACE_BYTES = 2 + Integer.BYTES + Long.BYTES + 1;

  private SortKey() {}

  /**
   * The key of a name at a place.
   *
   * @param round of {@link HardLinks}; a later round replaces the result of an earlier one for a
   *     place
   */
  static byte[] of(byte[] memberKey, int shard, long position, int round) {
    return ByteBuffer.allocate(memberKey.length + PLACE_BYTES)
        .put(memberKey)
        .putShort((short) 0)
        .putInt(shard)
        .putLong(position + 1)
        .put((byte) round)
        .array();
  }

  static byte[] memberKey(byte[] key) {
    return Arrays.copyOf(key, key.length - PLACE_BYTES);
  }

  /** The key without the round: the order of members. */
  static byte[] place(byte[] key) {
    return Arrays.copyOf(key, key.length - 1);
  }

  /** The key of the same place in a later round. */
  static byte[] in(byte[] key, int round) {
    byte[] later = key.clone();
    later[later.length - 1] = (byte) round;
    return later;
  }
}
