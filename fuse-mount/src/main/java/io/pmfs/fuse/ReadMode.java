package io.pmfs.fuse;

/** What the kernel may answer without us. */
public enum ReadMode {
  /**
   * OPEN is answered ENOSYS once: from then on the kernel opens files by itself and keeps their
   * data in its page cache for good. A warm open, read and close is no request at all.
   */
  PAGE_CACHE("page-cache"),
  /**
   * OPEN hands the kernel the copy's own file, which it reads and maps without us. Files without a
   * whole copy are read through us until they are opened again.
   */
  PASSTHROUGH("passthrough"),
  /** Not chosen yet: opened and read through us, as what has no whole copy. */
  AUTO("auto");

  private final String word;

  ReadMode(String word) {
    this.word = word;
  }

  /** The word for it on the command line. */
  public String word() {
    return word;
  }
}
