package io.pmfs.writable.drain;

import io.pmfs.posix.FsException;
import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * The files and names of steps whose records a power failure would lose. A step that is not
 * recorded is repeated; that is safe for one step, but not for two of the same file or name. Used
 * by one thread.
 */
final class Unsynced {
  private static final int MOST = 4096;

  private final State state;
  private final Set<Long> inodes = new HashSet<>();
  private final Set<At> names = new HashSet<>();

  /** The last change of the journal when it was synced. */
  private long syncedTo;

  Unsynced(State state) {
    this.state = state;
  }

  /**
   * Syncs the journal first where it must not lose a record: the source must never be ahead of a
   * journal cut by a power failure, and only the last step on a file or name may lose its record.
   */
  void syncBefore(List<Change> done) throws FsException {
    boolean isSynced = done.get(done.size() - 1).sequence() <= syncedTo;
    for (Change change : done) {
      isSynced = isSynced && !concerns(change);
    }
    if (!isSynced) {
      long head = state.head();
      state.sync();
      syncedTo = head;
      inodes.clear();
      names.clear();
    }
    done.forEach(this::add);
  }

  /** Whether earlier records must be synced before this change is made. */
  private boolean concerns(Change change) throws FsException {
    boolean moves = change instanceof Change.Rename || change instanceof Change.RemoveDirectory;
    return inodes.size() > MOST
        || (moves && !inodes.isEmpty() && isDirectory(change))
        || inodes.contains(change.inode())
        || inodes.contains(change.other())
        || change.names().stream().anyMatch(names::contains);
  }

  private boolean isDirectory(Change change) throws FsException {
    Inode inode = state.find(change.inode());
    return inode != null && inode.isDirectory();
  }

  private void add(Change change) {
    inodes.add(change.inode());
    names.addAll(change.names());
    if (change.other() != 0) {
      inodes.add(change.other());
    }
  }
}
