package io.pmfs.fuse;

/** What the kernel may answer without the daemon. */
public enum ReadMode {
  /**
   * OPEN is answered ENOSYS once: from then on the kernel opens files by itself and keeps their
   * data in its page cache for the whole session. A warm open, read and close sends no request at
   * all.
   */
  PAGE_CACHE("page-cache"),
  /**
   * OPEN gives the kernel the copy's own file, which it reads and maps without the daemon. Files
   * without a whole copy are read through the daemon until they are opened again.
   */
  PASSTHROUGH("passthrough"),
  /**
   * Not chosen yet: files are opened and read through the daemon, like files without a whole copy.
   */
  AUTO("auto");

  private final String word;

  ReadMode(String word) {
    this.word = word;
  }

  /** The mode's name on the command line. */
  public String word() {
    return word;
  }
}
