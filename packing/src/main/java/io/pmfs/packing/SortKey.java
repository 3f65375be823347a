package io.pmfs.packing;

import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * What members are sorted by while an index is made: the key of a name, then the place of a member
 * that has or wants that name. Two NULs between them come before any name below the first.
 */
final class SortKey {
  private static final int PLACE_BYTES = 2 + Integer.BYTES + Long.BYTES + 1;

  private SortKey() {}

  /**
   * The key of a name at a place.
   *
   * @param round of {@link HardLinks}, each of which replaces what the one before said of a place
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

  /** All but the round: what members are one behind the other by. */
  static byte[] place(byte[] key) {
    return Arrays.copyOf(key, key.length - 1);
  }

  /** The same place in a later round. */
  static byte[] in(byte[] key, int round) {
    byte[] later = key.clone();
    later[later.length - 1] = (byte) round;
    return later;
  }
}
