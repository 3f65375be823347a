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

  /** No session: sessions are numbered from 1. */
  public static final int NEVER = 0;

  /**
   * Whether a file found under one of its names at the source is the one that it represents: it has
   * the same number or, because some sources change the numbers of files, it is {@linkplain
   * Attributes#areUntouched untouched}. Ignores the device, whose number changes between mounts.
   */
  public boolean isFile(FileIdentity seen, Attributes now) {
    return attributes.type() == now.type()
        && (identity.inode() == seen.inode() || isRenumbered(seen, now));
  }

  /** Whether that is the same file with another number at the source. */
  public boolean isRenumbered(FileIdentity seen, Attributes now) {
    return identity.inode() != seen.inode() && !seen.isExact() && attributes.areUntouched(now);
  }

  /**
   * Whether it still represents what is under its name: the same file, or any directory. The
   * content of another directory is compared name by name.
   */
  public boolean continuesAs(FileIdentity seen, Attributes now) {
    return isFile(seen, now)
        || (attributes.type() == FileType.DIRECTORY && now.type() == FileType.DIRECTORY);
  }

  /** Whether this is its recorded name. */
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
