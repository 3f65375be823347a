package io.pmfs.metadata;

import org.jspecify.annotations.Nullable;

/**
 * A file of the dataset.
 *
 * @param number the number that pmfs assigned; persistent, never reused within a dataset
 * @param identity the source file that it represents
 * @param parent the directory of one of its names; the root's parent is the root
 * @param name that name; empty for the root
 * @param checkedIn the session in which its attributes were last compared with the source; {@link
 *     #NEVER} if another node reported them
 * @param listing set for an imported directory
 */
public record Inode(
    long number,
    FileIdentity identity,
    long parent,
    FileName name,
    int checkedIn,
    @Nullable Listing listing,
    Attributes attributes) {

  /** No session: they begin at 1. */
  public static final int NEVER = 0;

  /**
   * Whether a file that the source shows under one of its names is the one that it represents: it
   * has the same number or, as some sources give a file another number from time to time, it is
   * {@linkplain Attributes#areUntouched untouched}. Ignores the device, whose number changes
   * between mounts.
   */
  public boolean isFile(FileIdentity seen, Attributes now) {
    return attributes.type() == now.type()
        && (identity.inode() == seen.inode() || isRenumbered(seen, now));
  }

  /** Whether that is the same file with another number. */
  public boolean isRenumbered(FileIdentity seen, Attributes now) {
    return identity.inode() != seen.inode() && !seen.isExact() && attributes.areUntouched(now);
  }

  /**
   * Whether it goes on to represent what is under its name: the same file, or any directory. What
   * another directory contains is compared name by name.
   */
  public boolean continuesAs(FileIdentity seen, Attributes now) {
    return isFile(seen, now)
        || (attributes.type() == FileType.DIRECTORY && now.type() == FileType.DIRECTORY);
  }

  /** Whether this is the name by which it is found. */
  public boolean goesBy(long directory, FileName name) {
    return parent == directory && this.name.equals(name);
  }

  /** By another of its names. */
  public Inode withName(long parent, FileName name) {
    return new Inode(number, identity, parent, name, checkedIn, listing, attributes);
  }

  /** Compared with the source in a session. */
  public Inode withSession(int session) {
    return new Inode(number, identity, parent, name, session, listing, attributes);
  }

  public Inode withListing(@Nullable Listing listing) {
    return new Inode(number, identity, parent, name, checkedIn, listing, attributes);
  }

  public Inode with(Attributes attributes) {
    return new Inode(number, identity, parent, name, checkedIn, listing, attributes);
  }
}
