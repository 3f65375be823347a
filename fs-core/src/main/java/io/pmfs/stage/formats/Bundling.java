package io.pmfs.stage.formats;

/**
 * Which small copies share the bundles of their tier. A copy in a bundle is not a file of its own
 * and its size is not rounded up.
 */
public enum Bundling {
  /**
   * None, so that evicting a copy always frees room: a bundle's room is freed with its last copy.
   */
  NONE,
  /** Only compressed ones: a kernel that reads copies without pmfs needs raw ones as files. */
  COMPRESSED,
  /** All. */
  ALL;

  /** 256 KiB. Larger raw copies are files, so that the kernel can read them without pmfs. */
  private static final long LARGEST_RAW_BYTES = 256 << 10;

  public boolean takesRaw(long size) {
    return this == ALL && size <= LARGEST_RAW_BYTES;
  }

  /**
   * Whether the compressed copy of a file of that size goes into a bundle: only if all its frames
   * are written at once.
   */
  boolean takesCompressed(long size) {
    return this != NONE && size <= Blocks.SIZE;
  }

  /** The allocation unit of compressed copies of small files. */
  int unitBytes() {
    return this == NONE ? Compressibility.ALLOCATION_BYTES : 1;
  }
}
