package io.pmfs.metadata;

/** The type of a file: the S_IFMT bits of its mode (POSIX; the numbers are Linux's). */
public enum FileType {
  /** The type of a name whose file the source could not describe yet. */
  UNKNOWN(0x0),
  FIFO(0x1),
  CHARACTER_DEVICE(0x2),
  DIRECTORY(0x4),
  BLOCK_DEVICE(0x6),
  REGULAR(0x8),
  SYMBOLIC_LINK(0xa),
  SOCKET(0xc);

  private static final int TYPE_SHIFT = 12;
  private static final FileType[] VALUES = values();

  private final int number;

  FileType(int number) {
    this.number = number;
  }

  /** Linux's DT_ number: the S_IFMT bits shifted down. */
  public int number() {
    return number;
  }

  /**
   * The file type in a mode.
   *
   * @throws IllegalArgumentException if the mode contains no file type
   */
  public static FileType ofMode(int mode) {
    return ofNumber((mode >>> TYPE_SHIFT) & 0xf);
  }

  /**
   * The type with that DT_ number.
   *
   * @throws IllegalArgumentException if there is none
   */
  public static FileType ofNumber(int number) {
    for (FileType type : VALUES) {
      if (type.number == number) {
        return type;
      }
    }
    throw new IllegalArgumentException("no file type has the number " + number);
  }
}
