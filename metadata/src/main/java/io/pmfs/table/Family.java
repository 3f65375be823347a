package io.pmfs.table;

import static java.nio.charset.StandardCharsets.US_ASCII;

/** The column families, each a separate sorted map; {@code Keys} describes keys and values. */
public enum Family implements Column {
  /** Facts about the namespace as a whole. */
  DEFAULT("default", false),
  /** Inodes by number. */
  INODES("inodes", false),
  /** Entries by directory and name. */
  NAMES("names", true),
  /** Entries by directory and position. */
  LISTING("listing", true),
  /** Inode numbers of files with several hard links, by their identity in the source. */
  LINKS("links", false),
  /** All names of files with several hard links, by number. */
  ALIASES("aliases", true),
  /** Targets of symbolic links by number. */
  TARGETS("targets", false),
  /** Extended attributes by number. */
  XATTRS("xattrs", false),
  /** Copies by number and tier. */
  COPIES("copies", true);

  private final String familyName;
  private final boolean grouped;

  Family(String familyName, boolean grouped) {
    this.familyName = familyName;
    this.grouped = grouped;
  }

  @Override
  public byte[] bytes() {
    return familyName.getBytes(US_ASCII);
  }

  @Override
  public boolean grouped() {
    return grouped;
  }
}
