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
}
