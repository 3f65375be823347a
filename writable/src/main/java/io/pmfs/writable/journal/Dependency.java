package io.pmfs.writable.journal;

/**
 * What one change needs and another leaves undone. A change waits for an earlier one that the
 * source lacks if both have this, the earlier in {@link Change#leaves} and the later in {@link
 * Change#needs}.
 */
public sealed interface Dependency {
  record Node(long inode) implements Dependency {}

  record Name(At at) implements Dependency {}

  /** The existence of a directory. */
  record Directory(long inode) implements Dependency {}

  /** The names in a directory that is removed. */
  record Entries(long directory) implements Dependency {}

  /** The places of directories: a directory must not become its own descendant. */
  record Tree() implements Dependency {}

  /**
   * What a user did before a rename: an index must not appear before its parts. Programs often
   * rename in other processes than those that write, so this includes everything the user did.
   */
  record Parts(int uid) implements Dependency {}
}
