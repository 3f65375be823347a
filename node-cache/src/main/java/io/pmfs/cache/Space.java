package io.pmfs.cache;

/** What copies take of their disk: bytes in whole units, and files, which are its inodes. */
record Space(long bytes, long files) {
  static final Space NONE = new Space(0, 0);

  private static final int UNIT_BYTES = 4096;

  /** What a file of so many bytes takes. */
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

  /** Which part of the whole this is: of its bytes or of its files, whichever is more. */
  double partOf(Space whole) {
    return Math.max((double) bytes / whole.bytes, (double) files / whole.files);
  }
}
