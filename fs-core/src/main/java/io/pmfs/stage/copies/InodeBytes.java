package io.pmfs.stage.copies;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * One byte of state per inode number, initially zero. Inode numbers are dense: ten million files
 * need ten megabytes, a hash map hundreds. Thread-safe without locks, except for growing.
 */
public final class InodeBytes {
  private static final int SEGMENT_SHIFT = 16;
  private static final int SEGMENT_SIZE = 1 << SEGMENT_SHIFT;
  private static final VarHandle BYTES = MethodHandles.arrayElementVarHandle(byte[].class);

  private volatile byte[] @Nullable [] segments = new byte[16][];

  public byte get(long number) {
    byte[] segment = segment(number, false);
    return segment == null ? 0 : (byte) BYTES.getVolatile(segment, indexInSegment(number));
  }

  public void set(long number, byte value) {
    byte[] segment = segment(number, value != 0);
    if (segment != null) {
      BYTES.setVolatile(segment, indexInSegment(number), value);
    }
  }

  /** Sets the byte if it still has the expected value; otherwise false. */
  public boolean compareAndSet(long number, byte expected, byte value) {
    while (true) {
      byte[] segment = segment(number, true);
      if (segment == null) {
        continue;
      }
      // A weaker form would suffice, but this is one instruction on x86-64.
      return BYTES.compareAndSet(segment, indexInSegment(number), expected, value);
    }
  }

  /** The lowest number, from the given one on, with a byte other than zero; -1 if there is none. */
  public long next(long from) {
    byte[] @Nullable [] table = segments;
    for (long number = from; number >>> SEGMENT_SHIFT < table.length; ) {
      byte[] segment = table[(int) (number >>> SEGMENT_SHIFT)];
      if (segment == null) {
        number = ((number >>> SEGMENT_SHIFT) + 1) << SEGMENT_SHIFT;
      } else if ((byte) BYTES.getVolatile(segment, indexInSegment(number)) == 0) {
        number++;
      } else {
        return number;
      }
    }
    return -1;
  }

  private static int indexInSegment(long number) {
    return (int) (number & (SEGMENT_SIZE - 1));
  }

  private byte @Nullable [] segment(long number, boolean make) {
    long index = number >>> SEGMENT_SHIFT;
    byte[] @Nullable [] table = segments;
    byte[] segment = index < table.length ? table[(int) index] : null;
    return segment == null && make ? grow(Math.toIntExact(index)) : segment;
  }

  private synchronized byte[] grow(int index) {
    byte[] @Nullable [] table = segments;
    if (index >= table.length) {
      table = Arrays.copyOf(table, Math.max(index + 1, table.length * 2));
    } else {
      table = table.clone();
    }
    byte[] segment = table[index];
    if (segment == null) {
      segment = new byte[SEGMENT_SIZE];
      table[index] = segment;
      segments = table;
    }
    return segment;
  }
}
