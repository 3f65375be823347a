package io.pmfs.writable.steps;

import io.pmfs.metadata.Attributes;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.journal.At;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.tree.Homes;
import io.pmfs.writable.tree.SourceTree;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gives directories of the source the times that the mount shows, after steps have changed names in
 * them. Used by one thread.
 */
public final class DirectoryTimes {
  private static final Logger log = LoggerFactory.getLogger(DirectoryTimes.class);

  private final Step step;
  private final State state;
  private final SourceTree tree;

  DirectoryTimes(Step step) {
    this.step = step;
    this.state = step.state();
    this.tree = step.tree();
  }

  /** Call before a change modifies the names in a directory of the source. */
  public void disturb(Change change, long directory) {
    tree.disturbed().add(change.sequence(), directory);
  }

  /**
   * Gives directories of the source the times that the mount shows: all directories in which these
   * changes create, omit or remove a name, or had a temporary file. Directories that later changes
   * modify are left to those.
   */
  public Recording touched(List<Change> done, Set<Long> sequences) throws FsException {
    Set<Long> directories = tree.disturbed().of(sequences);
    if (!directories.isEmpty()) {
      tree.beginMove(); // Readers see the directories before or after, not in between.
    }
    for (Change change : done) {
      change.names().forEach(name -> directories.add(name.directory()));
      if (change instanceof Change.SetAttributes || change instanceof Change.SetExtended) {
        directories.add(change.inode());
      }
    }
    long position = Math.max(state.committed(), done.get(done.size() - 1).sequence());
    boolean isAlone = done.size() == 1 && done.get(0) instanceof Change.SetAttributes;
    Recording recording = Recording.NOTHING;
    for (long number : directories) {
      Inode inode = state.find(number);
      boolean isDue =
          inode != null
              && inode.isDirectory()
              && !inode.isRemoved()
              && inode.change() <= position
              && !tree.disturbed().isByOthers(number, sequences);
      if (isDue) {
        recording = recording.and(isAlone ? touched(number) : touchedNowOrLater(number));
      }
    }
    return recording;
  }

  private Recording touchedNowOrLater(long number) throws FsException {
    try {
      return touched(number);
    } catch (FsException e) {
      if (e.errno() == Errno.EINTR) {
        throw e;
      }
      log.debug("the times of directory {} are set later: {}", number, e.getMessage());
      return toBeTouched(number);
    }
  }

  /** Adds a change that sets the times of a directory, because they could not be set now. */
  private Recording toBeTouched(long number) {
    return update -> {
      Inode inode = update.find(number);
      if (inode != null && !inode.isRemoved()) {
        long sequence = update.nextSequence();
        update.journal(
            new Change.SetAttributes(
                new Change.Head(sequence, number, 0, 0, state.millis()),
                inode.attributes(),
                Change.SetAttributes.TOUCH));
        update.put(inode.withChange(sequence));
      }
    };
  }

  /** Gives a directory the times that the mount shows. */
  private Recording touched(long number) throws FsException {
    try (SourceTree.Directory directory = step.openIfThere(number)) {
      Inode inode = state.find(number);
      if (directory == null || inode == null) {
        return Recording.NOTHING;
      }
      Stat there = directory.status(Inode.NO_NAME);
      Stat seen = inode.seen();
      if (seen == null || !seen.isSameFile(there)) {
        return Recording.NOTHING; // Another program's directory, or one that was just moved.
      }
      Instant wanted = inode.attributes().modificationTime();
      if (!wanted.equals(there.attributes().modificationTime())) {
        setTimes(directory, inode.attributes());
        there = directory.status(Inode.NO_NAME);
      }
      return touched(number, there);
    }
  }

  private static Recording touched(long number, Stat there) {
    return update -> {
      Inode now = update.find(number);
      if (now != null) {
        Inode next = OwnVersions.hasTimeOf(there, now) ? OwnVersions.agreed(now, there) : now;
        update.put(Homes.seen(update, next, there));
      }
    };
  }

  /** Gives a moved directory the times that the mount shows. */
  public void touchMoved(SourceTree.Directory node, long number) throws FsException {
    Inode inode = state.find(number);
    if (inode != null && inode.isDirectory()) {
      setTimes(node, inode.attributes());
    }
  }

  /**
   * Marks the directories in which a change may have had temporary files: those of its names and
   * their ancestors.
   */
  public void leave(Change change) throws FsException {
    for (At name : change.names()) {
      long at = name.directory();
      while (at != 0 && tree.disturbed().leaveDirectory(at)) {
        Inode inode = at == WritableFileSystem.ROOT ? null : state.find(at);
        at = inode == null ? 0 : inode.parent();
      }
    }
  }

  /** Restores the times that no later change will. */
  public void touchLeft() throws FsException {
    for (long number : tree.disturbed().left()) {
      Inode inode = state.find(number);
      if (inode != null && !inode.isRemoved() && inode.change() <= state.committed()) {
        tree.beginMove();
        step.recordNow(touchedNowOrLater(number));
      }
      tree.disturbed().removeLeft(number);
    }
  }

  /** Sets a directory's times, if its owner and file system allow that. */
  private void setTimes(SourceTree.Directory node, Attributes wanted) throws FsException {
    try {
      tree.calls().setTimes(node.file(), wanted.accessTime(), wanted.modificationTime());
    } catch (FsException e) {
      switch (e.errno()) {
        case EPERM, EACCES, EBADF, EINVAL, EOPNOTSUPP, EROFS, ENOENT -> {}
        default -> throw e;
      }
    }
  }
}
