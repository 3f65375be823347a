package io.pmfs.writable.drain;

import io.pmfs.metadata.FileName;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import io.pmfs.writable.Descriptors;
import io.pmfs.writable.Extended;
import io.pmfs.writable.LiveFile;
import io.pmfs.writable.LiveFiles;
import io.pmfs.writable.drain.Step.Recording;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * What a program still has of an open file when the source loses its last name: the content, as the
 * daemon has it open too, and the extended attributes. Used by one thread.
 */
public final class Remains {
  /** Who holds the lock of a file may wait for the committer. */
  private static final long PATIENCE_MILLIS = 500;

  private final State state;
  private final LiveFiles live;
  private final Descriptors descriptors;
  private final Extended extended;

  public Remains(State state, LiveFiles live, Descriptors descriptors, Extended extended) {
    this.state = state;
    this.live = live;
    this.descriptors = descriptors;
    this.extended = extended;
  }

  /** To be called before a name goes, and to be recorded afterwards; no name may be moving. */
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
    LiveFile file = live.acquireKnown(number);
    if (file == null) {
      return;
    }
    try {
      if (!file.lock.writeLock().tryLock(PATIENCE_MILLIS, TimeUnit.MILLISECONDS)) {
        return;
      }
      try {
        Inode inode = state.find(number);
        if (inode != null && inode.generation() == 0 && inode.attributes().size() > 0) {
          descriptors.openSource(file, inode);
        }
      } finally {
        file.lock.writeLock().unlock();
      }
    } catch (FsException e) {
      if (e.errno() != Errno.ESTALE && e.errno() != Errno.EACCES) {
        throw e;
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new FsException(Errno.EINTR, "opening a file before it is removed", e);
    } finally {
      live.release(file);
    }
  }
}
