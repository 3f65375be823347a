package io.pmfs.stage;

import java.util.Locale;

/** Whether files that other nodes hold for all are copied here when they are read. */
public enum RemoteCopies {
  /** While there is room to spare; they are the first to go when there is none. */
  AUTO,
  /** As this node's own. */
  KEEP,
  /** Not when they are read, only when it is asked for by name. */
  NEVER;

  /** The word for it on the command line. */
  public String word() {
    return name().toLowerCase(Locale.ROOT);
  }
}
