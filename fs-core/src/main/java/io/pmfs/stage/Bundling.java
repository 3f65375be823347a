package io.pmfs.stage;

/** Which small copies share bundles of their tier, where none is a file and none is rounded up. */
public enum Bundling {
  /** None: what is in a bundle makes no room before the last of it is removed. */
  NONE,
  /** Compressed ones: a kernel that reads copies without us needs raw ones as files. */
  COMPRESSED,
  /** All. */
  ALL;

  /** Larger raw copies are files, for a kernel that reads them without us: 256 KiB. */
  private static final long LARGEST_RAW_BYTES = 256 << 10;

  /** Whether a raw copy of that size goes into a bundle. */
  boolean takesRaw(long size) {
    return this == ALL && size <= LARGEST_RAW_BYTES;
  }

  /** Whether the compressed copy of a file of that size does: its frames come at once. */
  boolean takesCompressed(long size) {
    return this != NONE && size <= Blocks.SIZE;
  }

  /** In what units a compressed copy of a small file takes room. */
  int unitBytes() {
    return this == NONE ? Compressibility.ALLOCATION_BYTES : 1;
  }
}
