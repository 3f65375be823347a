package io.pmfs.shards;

import java.util.Arrays;

/**
 * Where a file has data: extents in ascending order, none empty, none adjacent to the next; between
 * them are holes. In a shard the extents follow each other without the holes. Immutable.
 */
final class Extents {
  /** About 1 MiB in memory and in the index. */
  static final int MAX_COUNT = 1 << 16;

  private final long[] offsets;
  private final long[] sizes;

  /** Where each extent begins in the shard, relative to the first. */
  private final long[] stored;

  private Extents(long[] offsets, long[] sizes) {
    this.offsets = offsets;
    this.sizes = sizes;
    this.stored = new long[offsets.length + 1];
    for (int i = 0; i < sizes.length; i++) {
      stored[i + 1] = stored[i] + sizes[i];
    }
  }

  static Extents whole(long size) {
    return size == 0
        ? new Extents(new long[0], new long[0])
        : new Extents(new long[] {0}, new long[] {size});
  }

  int count() {
    return offsets.length;
  }

  long offset(int index) {
    return offsets[index];
  }

  long size(int index) {
    return sizes[index];
  }

  long dataBytes() {
    return stored[sizes.length];
  }

  boolean isWhole(long size) {
    return size == 0 ? count() == 0 : count() == 1 && offsets[0] == 0 && sizes[0] == size;
  }

  /**
   * The extent that contains the offset, or else the first one after it; the number of extents if
   * there is none.
   */
  int at(long offset) {
    int found = Arrays.binarySearch(offsets, offset);
    if (found >= 0) {
      return found;
    }
    int before = -found - 2;
    return before >= 0 && offset < offsets[before] + sizes[before] ? before : before + 1;
  }

  /** The position in the shard of an offset within an extent, relative to the first extent. */
  long stored(int index, long offset) {
    return stored[index] + offset - offsets[index];
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Extents extents
        && Arrays.equals(offsets, extents.offsets)
        && Arrays.equals(sizes, extents.sizes);
  }

  @Override
  public int hashCode() {
    return 31 * Arrays.hashCode(offsets) + Arrays.hashCode(sizes);
  }

  @Override
  public String toString() {
    return "Extents" + Arrays.toString(offsets) + Arrays.toString(sizes);
  }

  /** Collects extents in the order in which they are read. */
  static final class Builder {
    private long[] offsets = new long[8];
    private long[] sizes = new long[8];
    private int count;
    private long end;
    private boolean started;

    /**
     * Adds an extent.
     *
     * @throws IllegalArgumentException if it does not follow the previous one, or there are too
     *     many
     */
    Builder add(long offset, long size) {
      if (offset < 0 || size < 0 || offset > Long.MAX_VALUE - size || (started && offset < end)) {
        throw new IllegalArgumentException("the extents of a sparse file are not in order");
      }
      if (size > 0) {
        if (count > 0 && offset == end) {
          sizes[count - 1] += size;
        } else {
          append(offset, size);
        }
      }
      started = true;
      end = offset + size;
      return this;
    }

    private void append(long offset, long size) {
      if (count == MAX_COUNT) {
        throw new IllegalArgumentException(
            "a sparse file of more than " + MAX_COUNT + " extents is not supported");
      }
      if (count == offsets.length) {
        offsets = Arrays.copyOf(offsets, 2 * count);
        sizes = Arrays.copyOf(sizes, 2 * count);
      }
      offsets[count] = offset;
      sizes[count] = size;
      count++;
    }

    /**
     * Returns the collected extents.
     *
     * @throws IllegalArgumentException if the last one ends beyond the end of the file
     */
    Extents build(long size) {
      if (end > size) {
        throw new IllegalArgumentException("a sparse file has data beyond its end");
      }
      return new Extents(Arrays.copyOf(offsets, count), Arrays.copyOf(sizes, count));
    }
  }
}
