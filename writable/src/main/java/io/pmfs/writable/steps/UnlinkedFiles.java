package io.pmfs.writable.steps;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.data.OutputFiles;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.tree.Extended;
import java.util.Map;

/**
 * Preserves what programs still use of an open file when the source loses its last name: the
 * content, by an open descriptor, and the extended attributes. Used by one thread.
 */
public final class UnlinkedFiles {
  /** The lock's holder may be waiting for the committer. */
  private static final long PATIENCE_MILLIS = 500;

  private final State state;
  private final OutputFiles files;
  private final Extended extended;

  public UnlinkedFiles(State state, OutputFiles files, Extended extended) {
    this.state = state;
    this.files = files;
    this.extended = extended;
  }

  /** Whether programs may still use a file that the source is to lose. */
  static boolean isUsed(Inode inode) {
    return inode.isRegular() && inode.isRemoved() && inode.hasHome() && !inode.is(Inode.FORGOTTEN);
  }

  /** Call before the name is removed; record the result afterwards. */
  public Recording of(Inode inode) throws FsException {
    if (!isUsed(inode)) {
      return Recording.NOTHING;
    }
    open(inode.number());
    Map<FileName, byte[]> attributes = extended.atSource(inode.number());
    return update -> extended.keep(update, inode.number(), attributes);
  }

  private void open(long number) throws FsException {
    try (OutputFiles.Locked locked = files.tryLockUsed(number, PATIENCE_MILLIS)) {
      Inode inode = locked == null ? null : state.find(number);
      if (locked != null
          && inode != null
          && inode.generation() == 0
          && inode.attributes().size() > 0) {
        files.tree().looks().here(() -> locked.file().openSource(inode));
      }
    } catch (FsException e) {
      if (e.errno() != Errno.ESTALE && e.errno() != Errno.EACCES) {
        throw e;
      }
    }
  }
}
