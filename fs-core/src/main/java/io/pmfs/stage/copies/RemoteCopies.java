package io.pmfs.stage.copies;

import java.util.Locale;

/** Whether a file that another node holds is copied here when it is read. */
public enum RemoteCopies {
  /** While there is room to spare; such copies are evicted first. */
  AUTO,
  /** Like this node's own files. */
  KEEP,
  /** Not when read, only when staged. */
  NEVER;

  /** The word on the command line. */
  public String word() {
    return name().toLowerCase(Locale.ROOT);
  }
}
