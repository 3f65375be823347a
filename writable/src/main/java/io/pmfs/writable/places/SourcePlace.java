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
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import io.pmfs.writable.tree.SourceTree;
import java.nio.charset.StandardCharsets;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A hidden directory of the source, the last resort: it never refuses, but fails as the source
 * does. Thread-safe.
 */
@SuppressWarnings("try")
final class SourcePlace extends LocalPlace {
  private static final Logger log = LoggerFactory.getLogger(SourcePlace.class);

  private static final int OTHERS_WRITE = 022;

  private final State state;
  private final SourceTree tree;
  private final FileName directory;

  /** A file that shows who the daemon is at the source. */
  private final FileName probe;

  /** Whether the directory may exist without a data file. */
  private volatile boolean mayBeUnused;

  SourcePlace(int number, State state, SourceTree tree, String mount, OutputCalls calls) {
    super(number, "the source", calls);
    this.state = state;
    this.tree = tree;
    this.directory = FileName.of(TemporaryNames.PREFIX + mount + "-data");
    this.probe = FileName.of(TemporaryNames.PREFIX + mount + "-owner");
  }

  @Override
  public boolean isElsewhere() {
    return true;
  }

  @Override
  public boolean hasRoom(long bytes) {
    return true;
  }

  /** They take no room of this node. */
  @Override
  void charge(long bytes) {}

  @Override
  void close(int file) {
    tree.closeLater(file);
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
  void removed(boolean makesRoom) {
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

  // ---- whose directory it is

  /**
   * Others may be allowed to rename what the source's root contains. A directory has the data files
   * only if it has the owner and the rights of what this daemon makes there, or an earlier one:
   * nobody else can put a file in it.
   */
  @Override
  void checkOwn(int opened, FileName name) throws FsException {
    Attributes found = calls.status(opened, Inode.NO_NAME).attributes();
    Integer rights = rights(found.uid());
    if (rights == null || (found.mode() & OTHERS_WRITE & ~rights) != 0) {
      throw new FsException(
          Errno.EIO,
          "%s: another user's directory is in its place; move the mount's own back"
              .formatted(name));
    }
  }

  /** The mode of a user's new private file; null unless the user was or is the daemon's. */
  private @Nullable Integer rights(int uid) throws FsException {
    byte[] fact = ("daemon " + Integer.toUnsignedString(uid)).getBytes(StandardCharsets.US_ASCII);
    byte[] known = state.get(Tables.FACTS, fact);
    if (known != null) {
      return (int) Tables.first(known);
    }
    Attributes made = probe();
    if (made.uid() != uid) {
      return null;
    }
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      update.put(Tables.FACTS, fact, Tables.key(made.mode()));
      update.commit();
    }
    return made.mode();
  }

  /**
   * What the source makes of a private file of the daemon's. Root may be nobody there, and a file
   * system without modes gives all files the same. Only a file is certainly the one that was made.
   */
  private Attributes probe() throws FsException {
    try (SourceTree.Directory root = tree.open(WritableFileSystem.ROOT)) {
      Stat before = root.status(Inode.NO_NAME);
      removeProbe(root);
      int flags = OutputCalls.O_WRONLY | OutputCalls.O_CREAT | OutputCalls.O_EXCL;
      int file = calls.open(root.file(), probe, flags, FILE_MODE);
      try {
        return calls.status(file, Inode.NO_NAME).attributes();
      } finally {
        calls.close(file);
        removeProbe(root);
        keepTimes(root, before);
      }
    }
  }

  private void removeProbe(SourceTree.Directory root) throws FsException {
    try {
      calls.unlink(root.file(), probe);
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
    }
  }

  // ---- the end

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
    int top = openDirectory(root.file(), directory, false);
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
