package io.pmfs.metadata;

import java.util.Arrays;

/** CRC32C (RFC 3720) of each block of a copy, in order. Immutable. */
public final class Checksums {
  private final int[] values;

  private Checksums(int[] values) {
    this.values = values;
  }

  public static Checksums of(int... values) {
    return new Checksums(values.clone());
  }

  public int count() {
    return values.length;
  }

  public int get(int block) {
    return values[block];
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Checksums checksums && Arrays.equals(values, checksums.values);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(values);
  }

  @Override
  public String toString() {
    return "Checksums" + Arrays.toString(values);
  }
}
