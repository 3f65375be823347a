package io.pmfs.stage.formats;

/**
 * Which small copies share the bundles of their tier. A copy in a bundle is not a file of its own
 * and its size is not rounded up.
 */
public enum Bundling {
  /** None: a copy in a bundle frees no room before the last copy of the bundle is removed. */
  NONE,
  /** Only compressed ones: a kernel that reads copies without pmfs needs raw ones as files. */
  COMPRESSED,
  /** All. */
  ALL;

  /** 256 KiB. Larger raw copies are files, so that the kernel can read them without pmfs. */
  private static final long LARGEST_RAW_BYTES = 256 << 10;

  /** Whether a raw copy of that size goes into a bundle. */
  public boolean takesRaw(long size) {
    return this == ALL && size <= LARGEST_RAW_BYTES;
  }

  /**
   * Whether the compressed copy of a file of that size goes into a bundle: all its frames are
   * written at once.
   */
  boolean takesCompressed(long size) {
    return this != NONE && size <= Blocks.SIZE;
  }

  /** The allocation unit of compressed copies of small files. */
  int unitBytes() {
    return this == NONE ? Compressibility.ALLOCATION_BYTES : 1;
  }
}
