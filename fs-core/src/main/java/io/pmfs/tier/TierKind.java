package io.pmfs.tier;

/** What a tier is made of. */
public enum TierKind {
  /** Persistent memory, mounted as a file system. */
  PM("pm"),
  /** A local disk. */
  SSD("ssd");

  private final String word;

  TierKind(String word) {
    this.word = word;
  }

  /** The word for it on the command line. */
  public String word() {
    return word;
  }
}
