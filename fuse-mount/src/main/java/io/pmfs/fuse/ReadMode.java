package io.pmfs.fuse;

/** What the kernel may answer without the daemon. */
public enum ReadMode {
  /**
   * OPEN is answered ENOSYS once: then the kernel opens files without asking, and keeps their data
   * in its page cache for the whole session. A warm open, read and close sends no request.
   */
  PAGE_CACHE("page-cache"),
  /**
   * OPEN returns the copy's file to the kernel, which reads and maps it without the daemon. A file
   * without a whole copy is read through the daemon until it is opened again.
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
