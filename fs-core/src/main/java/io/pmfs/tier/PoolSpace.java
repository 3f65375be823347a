package io.pmfs.tier;

import java.util.BitSet;

/**
 * Tracks which units of a pool's data are in use, one bit each. Small ranges are allocated from the
 * end, so that they do not fragment the space of large ones; both searches continue where the last
 * one ended. Not thread-safe.
 */
final class PoolSpace {
  private final long start;
  private final int units;
  private final BitSet taken = new BitSet();

  /** Where the search for large ranges starts. */
  private int next;

  /** Small ranges are searched for below this. */
  private int last;

  /** Starts with all space free; space beyond 8 TiB is not used. */
  PoolSpace(long start, long bytes) {
    this.start = start;
    this.units = (int) Math.min(bytes / PoolSuperblock.UNIT_BYTES, Integer.MAX_VALUE - 8);
    this.last = units;
  }

  /**
   * Allocates a range of whole units; returns its offset, or -1 if no free range is long enough.
   */
  long take(long bytes, boolean fromEnd) {
    int count = units(bytes);
    if (count > units) {
      return -1;
    }
    int found = fromEnd ? findFromEnd(count) : find(count);
    if (found < 0) {
      return -1;
    }
    taken.set(found, found + count);
    if (fromEnd) {
      last = found;
    } else {
      next = found + count;
    }
    return start + (long) found * PoolSuperblock.UNIT_BYTES;
  }

  private int find(int count) {
    int found = find(next, units, count);
    return found >= 0 ? found : find(0, (int) Math.min(units, (long) next + count), count);
  }

  private int find(int from, int to, int count) {
    int at = from;
    while (at + (long) count <= to) {
      int free = taken.nextClearBit(at);
      if (free + (long) count > to) {
        return -1;
      }
      // Search backwards, because the space after this may be free up to the pool's end.
      int blocked = taken.previousSetBit(free + count - 1);
      if (blocked < free) {
        return free;
      }
      at = blocked + 1;
    }
    return -1;
  }

  private int findFromEnd(int count) {
    int found = findFromEnd(0, last, count);
    return found >= 0 ? found : findFromEnd(Math.max(0, last - count), units, count);
  }

  private int findFromEnd(int from, int to, int count) {
    int end = to;
    while (end - (long) count >= from) {
      int free = taken.previousClearBit(end - 1) + 1;
      if (free - (long) count < from) {
        return -1;
      }
      int blocked = taken.nextSetBit(free - count);
      if (blocked < 0 || blocked >= free) {
        return free - count;
      }
      end = blocked;
    }
    return -1;
  }

  /** Marks a given range as used; false if a part of it is in use. */
  boolean take(long offset, long bytes) {
    int first = units(offset - start);
    int count = units(bytes);
    if (first + (long) count > units) {
      return false;
    }
    int other = taken.nextSetBit(first);
    if (other >= 0 && other < first + count) {
      return false;
    }
    taken.set(first, first + count);
    return true;
  }

  void free(long offset, long bytes) {
    int first = units(offset - start);
    int end = first + units(bytes);
    taken.clear(first, end);
    last = Math.max(last, end);
  }

  private static int units(long bytes) {
    long count = (bytes + PoolSuperblock.UNIT_BYTES - 1) / PoolSuperblock.UNIT_BYTES;
    return (int) Math.min(count, Integer.MAX_VALUE);
  }
}
