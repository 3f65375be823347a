package io.pmfs.cache;

/** Disk space: allocated bytes, and files, that is, inodes. */
record Space(long bytes, long files) {
  static final Space NONE = new Space(0, 0);

  private static final int UNIT_BYTES = 4096;

  /** The space of a file of so many bytes. */
  static Space of(long size) {
    return new Space((size + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES, 1);
  }

  Space plus(Space other) {
    return new Space(bytes + other.bytes, files + other.files);
  }

  Space minus(Space other) {
    return new Space(bytes - other.bytes, files - other.files);
  }

  boolean fitsIn(Space other) {
    return bytes <= other.bytes && files <= other.files;
  }

  /** The fraction of {@code whole} that this is: the larger of bytes and files. */
  double partOf(Space whole) {
    return Math.max((double) bytes / whole.bytes, (double) files / whole.files);
  }
}
