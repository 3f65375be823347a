package io.pmfs.writable;

import io.pmfs.metadata.FileName;
import java.util.HashSet;
import java.util.Set;

/**
 * What the steps at the source were about whose records a power cut would take. A step that was
 * made and not recorded is made again; that is right for one step, but not for two of the same file
 * or name. Used by one thread.
 */
final class Unsynced {
  private static final int MOST = 4096;

  private record Entry(long directory, FileName name) {}

  private final Set<Long> inodes = new HashSet<>();
  private final Set<Entry> names = new HashSet<>();

  /** Whether a change needs the records of former steps on the disk before it is made. */
  boolean concerns(Change change, boolean isDirectory) {
    boolean moves = change.kind() == Change.Kind.RENAME || change.kind() == Change.Kind.RMDIR;
    return inodes.size() > MOST
        || (isDirectory && moves && !inodes.isEmpty())
        || inodes.contains(change.inode())
        || inodes.contains(change.other())
        || names.contains(new Entry(change.directory(), change.name()))
        || names.contains(new Entry(change.toDirectory(), change.toName()));
  }

  void add(Change change) {
    inodes.add(change.inode());
    add(change.directory(), change.name());
    add(change.toDirectory(), change.toName());
    if (change.other() != 0) {
      inodes.add(change.other());
    }
  }

  private void add(long directory, FileName name) {
    if (directory != 0) {
      names.add(new Entry(directory, name));
    }
  }

  void clear() {
    inodes.clear();
    names.clear();
  }
}
