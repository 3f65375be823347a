package io.pmfs.metadata;

/**
 * A range of a bundle, which is a file of a tier that holds many small copies.
 *
 * @param bundle the bundle's number, from 1
 * @param offset of the first byte
 * @param size bytes
 */
public record Extent(long bundle, long offset, long size) {
  public Extent {
    if (bundle < 1 || offset < 0 || size < 0 || offset > Long.MAX_VALUE - size) {
      throw new IllegalArgumentException(
          "bundle " + bundle + ", offset " + offset + ", size " + size);
    }
  }

  /** The offset behind it. */
  public long end() {
    return offset + size;
  }
}
