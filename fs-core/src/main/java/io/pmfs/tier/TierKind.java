package io.pmfs.tier;

/** The kind of storage of a tier. */
public enum TierKind {
  /** Persistent memory, mounted as a file system. */
  PM("pm"),
  /** A local disk. */
  SSD("ssd");

  private final String word;

  TierKind(String word) {
    this.word = word;
  }

  /** The word on the command line. */
  public String word() {
    return word;
  }
}
