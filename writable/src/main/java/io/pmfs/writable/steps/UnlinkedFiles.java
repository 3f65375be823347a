package io.pmfs.writable.steps;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.data.OutputFiles;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.tree.Extended;
import java.util.Map;
import org.jspecify.annotations.Nullable;

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

  /** Call before a name is removed, while no name is moving; record the result afterwards. */
  public Recording of(@Nullable Inode inode) throws FsException {
    if (inode == null
        || !inode.isRegular()
        || !inode.isRemoved()
        || !inode.hasHome()
        || inode.is(Inode.FORGOTTEN)) {
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
        locked.file().openSource(inode);
      }
    } catch (FsException e) {
      if (e.errno() != Errno.ESTALE && e.errno() != Errno.EACCES) {
        throw e;
      }
    }
  }
}
