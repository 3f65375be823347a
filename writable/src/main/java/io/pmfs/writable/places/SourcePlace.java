package io.pmfs.writable.places;

import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.TemporaryNames;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.tree.SourceTree;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A hidden directory of the source, the last resort: it never refuses, but fails as the source
 * does. Thread-safe.
 */
final class SourcePlace extends LocalPlace {
  private static final Logger log = LoggerFactory.getLogger(SourcePlace.class);

  private final SourceTree tree;
  private final FileName directory;

  /** Whether the directory may exist without a data file. */
  private volatile boolean mayBeUnused;

  SourcePlace(int number, SourceTree tree, String mount, OutputCalls calls) {
    super(number, "the source", calls);
    this.tree = tree;
    this.directory = FileName.of(TemporaryNames.PREFIX + mount + "-data");
  }

  @Override
  public boolean isElsewhere() {
    return true;
  }

  @Override
  public boolean hasRoom(long bytes) {
    return true;
  }

  @Override
  void grew(int file) {
    // Its own client knows when to send what was written.
  }

  @Override
  <T> T asked(Call<T> call) throws FsException {
    return call.make();
  }

  @Override
  void removed() {
    mayBeUnused = true;
  }

  @Override
  int openTop(boolean makes) throws FsException {
    try (SourceTree.Directory root = tree.open(WritableFileSystem.ROOT)) {
      Stat before = root.status(Inode.NO_NAME);
      int opened = openDirectory(root.file(), directory, makes);
      keepTimes(root, before);
      return opened;
    }
  }

  /** Restores the times of the source's root, so that the hidden directory does not show there. */
  private void keepTimes(SourceTree.Directory root, Stat before) {
    try {
      Attributes times = before.attributes();
      Stat now = root.status(Inode.NO_NAME);
      if (!now.attributes().modificationTime().equals(times.modificationTime())) {
        calls.setTimes(root.file(), times.accessTime(), times.modificationTime());
      }
    } catch (FsException e) {
      log.debug("the times of the source's root: {}", e.getMessage());
    }
  }

  /** Removes the hidden directory if it has no data file. */
  void tidy() {
    if (!mayBeUnused) {
      return;
    }
    try (SourceTree.Directory root = tree.open(WritableFileSystem.ROOT)) {
      tryAlone(
          () -> {
            mayBeUnused = false;
            removeFrom(root);
          });
    } catch (FsException e) {
      mayBeUnused |= e.errno() != Errno.ENOENT;
      log.debug("{} stays: {}", directory, e.getMessage());
    }
  }

  private void removeFrom(SourceTree.Directory root) throws FsException {
    Stat before = root.status(Inode.NO_NAME);
    int top = calls.openDirectory(root.file(), directory);
    try {
      for (FileName fan : names(top)) {
        calls.rmdir(top, fan);
      }
    } finally {
      calls.close(top);
    }
    calls.rmdir(root.file(), directory);
    keepTimes(root, before);
  }

  @Override
  void count(long end, DataPlaces.Left left) throws FsException {
    try {
      super.count(end, left);
      mayBeUnused = true;
    } catch (FsException e) {
      log.debug("{}: {}", directory, e.getMessage());
    }
  }
}
