package io.pmfs.writable.drain;

import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Change;
import java.util.HashSet;
import java.util.Set;

/**
 * The files and names of steps whose records a power failure would lose. A step that is not
 * recorded is repeated; that is safe for one step, but not for two of the same file or name. Used
 * by one thread.
 */
public final class Unsynced {
  private static final int MOST = 4096;

  private final Set<Long> inodes = new HashSet<>();
  private final Set<At> names = new HashSet<>();

  /** Whether earlier records must be synced before this change is made. */
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
