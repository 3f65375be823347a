package io.pmfs.writable.drain;

import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Change;
import java.util.HashSet;
import java.util.Set;

/**
 * What the steps at the source were about whose records a power cut would take. A step that was
 * made and not recorded is made again; that is right for one step, but not for two of the same file
 * or name. Used by one thread.
 */
public final class Unsynced {
  private static final int MOST = 4096;

  private final Set<Long> inodes = new HashSet<>();
  private final Set<At> names = new HashSet<>();

  /** Whether a change needs the records of former steps on the disk before it is made. */
  public boolean concerns(Change change, boolean isDirectory) {
    boolean moves = change instanceof Change.Rename || change instanceof Change.RemoveDirectory;
    return inodes.size() > MOST
        || (isDirectory && moves && !inodes.isEmpty())
        || inodes.contains(change.inode())
        || inodes.contains(change.other())
        || change.names().stream().anyMatch(names::contains);
  }

  public void add(Change change) {
    inodes.add(change.inode());
    names.addAll(change.names());
    if (change.other() != 0) {
      inodes.add(change.other());
    }
  }

  public void clear() {
    inodes.clear();
    names.clear();
  }
}
