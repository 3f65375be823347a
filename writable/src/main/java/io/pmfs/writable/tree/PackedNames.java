package io.pmfs.writable.tree;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.writable.tree.Listing.Child;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * A compact list of a directory's names, ordered by position: about 35 bytes and the name for each.
 * Filled by one thread; immutable after {@link #sort}.
 */
public final class PackedNames {
  private static final int FIRST_CAPACITY = 16;
  private static final int SMALL = 12;

  private long[] positions = new long[FIRST_CAPACITY];
  private long[] inodes = new long[FIRST_CAPACITY];
  private int[] offsets = new int[FIRST_CAPACITY];
  private short[] lengths = new short[FIRST_CAPACITY];
  private byte[] types = new byte[FIRST_CAPACITY];
  private byte[] names = new byte[FIRST_CAPACITY * 16];
  private int count;
  private int nameBytes;

  public int count() {
    return count;
  }

  public void add(Child child) {
    if (count == positions.length) {
      int more = count * 2;
      positions = Arrays.copyOf(positions, more);
      inodes = Arrays.copyOf(inodes, more);
      offsets = Arrays.copyOf(offsets, more);
      lengths = Arrays.copyOf(lengths, more);
      types = Arrays.copyOf(types, more);
    }
    byte[] name = child.name().bytes();
    if (names.length - nameBytes < name.length) {
      names = Arrays.copyOf(names, Math.max(2 * names.length, nameBytes + name.length));
    }
    System.arraycopy(name, 0, names, nameBytes, name.length);
    FileType type = child.type();
    positions[count] = child.position();
    inodes[count] = child.inode();
    offsets[count] = nameBytes;
    lengths[count] = (short) name.length;
    types[count] = (byte) (type == null ? 0 : type.number());
    nameBytes += name.length;
    count++;
  }

  public Child get(int index) {
    FileName name =
        FileName.of(Arrays.copyOfRange(names, offsets[index], offsets[index] + lengths[index]));
    FileType type = types[index] == 0 ? null : FileType.ofNumber(types[index]);
    return new Child(positions[index], name, inodes[index], type);
  }

  /** The index of the first name at or after a position. */
  public int firstFrom(long position) {
    int low = 0;
    int high = count;
    while (low < high) {
      int middle = (low + high) >>> 1;
      if (positions[middle] < position) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  @Nullable
  public Child find(long position, FileName name) {
    for (int i = firstFrom(position); i < count && positions[i] == position; i++) {
      Child child = get(i);
      if (child.name().equals(name)) {
        return child;
      }
    }
    return null;
  }

  // ---- sorting

  public void sort() {
    sort(0, count - 1);
  }

  /** Quicksort of parallel arrays; positions are hashes, so the middle is a good pivot. */
  private void sort(int from, int to) {
    int low = from;
    int high = to;
    while (high - low > SMALL) {
      int boundary = partition(low, high);
      if (boundary - low < high - boundary) {
        sort(low, boundary);
        low = boundary + 1;
      } else {
        sort(boundary + 1, high);
        high = boundary;
      }
    }
    for (int i = low + 1; i <= high; i++) {
      for (int j = i; j > low && isBefore(j, j - 1); j--) {
        swap(j, j - 1);
      }
    }
  }

  private int partition(int low, int high) {
    long pivot = positions[(low + high) >>> 1];
    int left = low - 1;
    int right = high + 1;
    while (true) {
      do {
        left++;
      } while (positions[left] < pivot);
      do {
        right--;
      } while (positions[right] > pivot);
      if (left >= right) {
        return right;
      }
      swap(left, right);
    }
  }

  private boolean isBefore(int one, int other) {
    if (positions[one] != positions[other]) {
      return positions[one] < positions[other];
    }
    return Arrays.compareUnsigned(
            names,
            offsets[one],
            offsets[one] + lengths[one],
            names,
            offsets[other],
            offsets[other] + lengths[other])
        < 0;
  }

  private void swap(int one, int other) {
    long position = positions[one];
    positions[one] = positions[other];
    positions[other] = position;
    long inode = inodes[one];
    inodes[one] = inodes[other];
    inodes[other] = inode;
    int offset = offsets[one];
    offsets[one] = offsets[other];
    offsets[other] = offset;
    short length = lengths[one];
    lengths[one] = lengths[other];
    lengths[other] = length;
    byte type = types[one];
    types[one] = types[other];
    types[other] = type;
  }
}
