package io.pmfs.it;

import io.pmfs.it.Versions.Version;
import java.util.Set;

/** What a {@link SourceView} shows of a file as it was before it changed. */
enum Lag {
  /** Attributes and content, as a client of a network file system that has both in its caches. */
  EVERYTHING,

  /** The attributes; the content is new, as far as the old size goes. */
  ATTRIBUTES,

  /**
   * The attributes, until content is read: an answer to a read of NFS has new attributes with it.
   */
  ATTRIBUTES_UNTIL_READ,

  /** The content, and behind its end the new one; the attributes are new. */
  CONTENT;

  /** Whether a file of the view may be shorter than the view says: it cannot be read then. */
  boolean isContradictory() {
    return this == ATTRIBUTES;
  }

  /** The versions that a reader may get who sees the files as they are. */
  static final Set<Version> NONE = Set.of(Version.NEW);

  /** The versions that a reader of the view itself may get. */
  Set<Version> shown() {
    return this == EVERYTHING ? Set.of(Version.OLD, Version.NEW) : Set.of(Version.values());
  }
}
