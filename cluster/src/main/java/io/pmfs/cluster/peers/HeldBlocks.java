package io.pmfs.cluster.peers;

import java.util.BitSet;
import java.util.List;
import java.util.UUID;

/**
 * A node's answer about the blocks of a large file. Hints only: a block may be gone when it is
 * requested.
 *
 * @param unit how many blocks a bit stands for, a power of two
 * @param units the units that the node has completely
 * @param askers how many nodes are reading the file from this owner; 0 from any other node
 * @param others ids of other nodes that may have blocks of it
 * @param granted blocks that the asker should read from this owner, because no other node has them
 */
public record HeldBlocks(
    int unit, BitSet units, int askers, List<UUID> others, List<Integer> granted) {
  /** Limit of bits in a message. */
  public static final int MOST_UNITS = 4096;

  /** Limit of blocks that an asker requests or is granted. */
  public static final int MOST_LISTED = 16;

  /**
   * The blocks that the asker would read next.
   *
   * @param missed blocks that it knows no other node to have
   * @param more further blocks
   */
  public record Wanted(List<Integer> missed, List<Integer> more) {
    public static final Wanted NOTHING = new Wanted(List.of(), List.of());
  }

  /** A node that has these blocks, of this many. */
  public static HeldBlocks of(
      int count, BitSet blocks, int askers, List<UUID> others, List<Integer> granted) {
    int unit = 1;
    while (count > (long) unit * MOST_UNITS) {
      unit *= 2;
    }
    if (unit == 1) {
      return new HeldBlocks(unit, blocks, askers, others, granted);
    }
    BitSet units = new BitSet();
    for (int first = 0; first < count; first += unit) {
      if (blocks.nextClearBit(first) >= Math.min(count, first + unit)) {
        units.set(first / unit);
      }
    }
    return new HeldBlocks(unit, units, askers, others, granted);
  }

  /** Whether this is valid for a file of this many blocks. */
  public boolean isOf(int count) {
    return units.length() <= (count + (long) unit - 1) / unit
        && granted.stream().allMatch(block -> block < count);
  }

  /** Whether it has each block of a file of this many. */
  public boolean hasAll(int count) {
    return count == 0 || units.nextClearBit(0) > (count - 1) / unit;
  }

  public boolean has(int block) {
    return units.get(block / unit);
  }
}
