package io.pmfs.writable.journal;

/**
 * What one change needs and another one leaves undone: a change waits for an earlier one that the
 * source does not have if this is in {@link Change#leaves} of the earlier and in {@link
 * Change#needs} of the later one.
 */
public sealed interface Dependency {
  /** A file, directory or other node. */
  record Node(long inode) implements Dependency {}

  /** A name. */
  record Name(At at) implements Dependency {}

  /** That a directory is there, and stays there. */
  record Directory(long inode) implements Dependency {}

  /** The names in a directory that goes. */
  record Entries(long directory) implements Dependency {}

  /** Where directories are: a directory must not become its own descendant. */
  record Tree() implements Dependency {}

  /**
   * What a user did before renaming something: an index must not appear before its parts. Programs
   * rename in other processes than the ones that write, so it is all that the user did.
   */
  record Parts(int uid) implements Dependency {}
}
