package io.pmfs.writable.places;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.OutputCalls;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A directory with data files in {@link #FANS} directories below it. Thread-safe. */
public abstract class LocalPlace extends DataPlace {
  private static final Logger log = LoggerFactory.getLogger(LocalPlace.class);

  private static final int FANS = 64;
  private static final int DIRECTORY_MODE = 0700;
  static final int FILE_MODE = 0600;

  /** Limit of descriptors of directories that were removed while open. */
  private static final int MOST_STALE = 16 * FANS;

  final OutputCalls calls;

  private final AtomicLong used = new AtomicLong();
  private final int[] directories = new int[FANS]; // GUARDED_BY(this); -1 if not open
  private final List<Integer> stale = new ArrayList<>(); // GUARDED_BY(this); removed, but open
  private boolean isClosed; // GUARDED_BY(this)

  /** Held shared by users of the directories, exclusively to remove them. */
  private final ReentrantReadWriteLock use = new ReentrantReadWriteLock();

  LocalPlace(int number, String name, OutputCalls calls) {
    super(number, name);
    this.calls = calls;
    Arrays.fill(directories, -1);
  }

  /**
   * Opens the directory with the {@link #FANS} directories.
   *
   * @param makes whether to create it if it does not exist; a full disk may refuse that
   */
  abstract int openTop(boolean makes) throws FsException;

  interface Call<T> {
    T make() throws FsException;
  }

  /**
   * Makes a call that the place may refuse.
   *
   * @throws FsException a {@linkplain DataPlaces#isRefusal refusal} if another place may take the
   *     file
   */
  abstract <T> T asked(Call<T> call) throws FsException;

  // ---- files

  @Override
  public LocalData file(NodeData.Id id) {
    return new LocalData(this, id);
  }

  /** Opens a data file for reading and writing, and creates it if it does not exist. */
  int create(NodeData.Id id) throws FsException {
    return asked(
        () -> {
          try {
            return openMade(id);
          } catch (FsException e) {
            if (e.errno() != Errno.ENOENT || !forgetRemoved(fan(id.inode()))) {
              throw e;
            }
            return openMade(id);
          }
        });
  }

  private int openMade(NodeData.Id id) throws FsException {
    FileName name = name(id);
    int flags = OutputCalls.O_RDWR | OutputCalls.O_CREAT;
    return in(
        fan(id.inode()),
        true,
        directory -> {
          try {
            return calls.open(directory, name, flags | OutputCalls.O_EXCL, FILE_MODE);
          } catch (FsException e) {
            if (e.errno() != Errno.EEXIST) {
              throw e;
            }
            return calls.open(directory, name, flags, FILE_MODE);
          }
        });
  }

  int open(NodeData.Id id, int flags) throws FsException {
    return in(fan(id.inode()), false, directory -> calls.open(directory, name(id), flags, 0));
  }

  /** Closes a data file without waiting for others than this node. */
  void close(int file) {
    calls.close(file);
  }

  @Override
  public long size(NodeData.Id id) throws FsException {
    try {
      return in(fan(id.inode()), false, directory -> calls.status(directory, name(id)))
          .attributes()
          .size();
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
      return 0;
    }
  }

  @Override
  public void copy(
      NodeData.Id id, int to, long from, long end, boolean isOver, DataCopy.Before before)
      throws FsException {
    LocalData file = file(id);
    file.openForReading();
    try {
      file.copy(to, from, end, isOver, before);
    } finally {
      file.close();
    }
  }

  @Override
  public void remove(NodeData.Id id) throws FsException {
    remove(id, true);
  }

  /** Removes a data file that was not filled, which makes no room for another attempt. */
  public void discard(NodeData.Id id) throws FsException {
    remove(id, false);
  }

  private void remove(NodeData.Id id, boolean makesRoom) throws FsException {
    try {
      FileName name = name(id);
      long blocks =
          in(
              fan(id.inode()),
              false,
              directory -> {
                long taken = calls.status(directory, name).attributes().blocks();
                calls.unlink(directory, name);
                return taken;
              });
      charge(-blocks * LocalData.BLOCK_BYTES);
      removed(makesRoom);
    } catch (FsException e) {
      if (e.errno() != Errno.ENOENT) {
        throw e;
      }
    }
  }

  abstract void removed(boolean makesRoom);

  /** Syncs the names of data files. */
  void syncName(NodeData.Id id) throws FsException {
    in(
        fan(id.inode()),
        false,
        directory -> {
          calls.sync(directory, false);
          return directory;
        });
  }

  // ---- room

  /** Adds to the counted disk usage of data files; negative to subtract. */
  void charge(long bytes) {
    used.addAndGet(bytes);
  }

  @Override
  long usedBytes() {
    return Math.max(0, used.get());
  }

  /** Some MiB more were written to an open data file. */
  abstract void grew(int file);

  // ---- directories

  private static FileName name(NodeData.Id id) {
    return FileName.of(Long.toHexString(id.inode()) + "." + Long.toHexString(id.generation()));
  }

  private static int fan(long inode) {
    return (int) (inode & (FANS - 1));
  }

  private static FileName fanName(int fan) {
    return FileName.of("%02x".formatted(fan));
  }

  /** The name of the directory for the data files of an inode. */
  static FileName directoryName(long inode) {
    return fanName(fan(inode));
  }

  interface Use<T> {
    T of(int directory) throws FsException;
  }

  <T> T in(int fan, boolean makes, Use<T> work) throws FsException {
    use.readLock().lock();
    try {
      return work.of(directory(fan, makes));
    } finally {
      use.readLock().unlock();
    }
  }

  private synchronized int directory(int fan, boolean makes) throws FsException {
    if (isClosed) {
      throw new FsException(Errno.EIO, name() + ": the mount ends");
    }
    if (directories[fan] < 0) {
      int top = openTop(makes);
      try {
        directories[fan] = openDirectory(top, fanName(fan), makes);
      } finally {
        calls.close(top);
      }
    }
    return directories[fan];
  }

  int openDirectory(int parent, FileName name, boolean makes) throws FsException {
    try {
      if (makes) {
        calls.mkdir(parent, name, DIRECTORY_MODE);
        calls.sync(parent, false);
      }
    } catch (FsException e) {
      if (e.errno() != Errno.EEXIST) {
        throw e;
      }
    }
    int opened = calls.openDirectory(parent, name);
    try {
      checkOwn(opened, name);
      return opened;
    } catch (FsException e) {
      calls.close(opened);
      throw e;
    }
  }

  /** Fails if an open directory may be one in which another user can change names. */
  abstract void checkOwn(int opened, FileName name) throws FsException;

  /**
   * Another program removed a directory that is open here. The descriptor stays open, because other
   * threads may be using it.
   *
   * @return whether to create the directory again
   */
  private synchronized boolean forgetRemoved(int fan) {
    if (directories[fan] < 0 || stale.size() >= MOST_STALE) {
      return false;
    }
    stale.add(directories[fan]);
    directories[fan] = -1;
    return true;
  }

  /** Closes the directories and runs an action, or returns false if they are in use. */
  boolean tryAlone(DataPlaces.Action action) throws FsException {
    if (!use.writeLock().tryLock()) {
      return false;
    }
    try {
      closeDirectories();
      action.run();
      return true;
    } finally {
      use.writeLock().unlock();
    }
  }

  private synchronized void closeDirectories() {
    for (int fan = 0; fan < FANS; fan++) {
      if (directories[fan] >= 0) {
        calls.close(directories[fan]);
        directories[fan] = -1;
      }
    }
    stale.forEach(calls::close);
    stale.clear();
  }

  @Override
  synchronized void close() {
    isClosed = true;
    closeDirectories();
  }

  // ---- data files of earlier processes

  List<FileName> names(int directory) throws FsException {
    List<FileName> names = new ArrayList<>();
    calls.list(directory, (name, inode, type) -> names.add(name));
    return names;
  }

  @Override
  void count(long end, DataPlaces.Left left) throws FsException {
    int top = openTop(false);
    List<FileName> there;
    try {
      there = names(top);
    } finally {
      calls.close(top);
    }
    for (int fan = 0; fan < FANS; fan++) {
      if (there.contains(fanName(fan))) {
        in(
            fan,
            false,
            directory -> {
              count(directory, end, left);
              return directory;
            });
      }
    }
  }

  private void count(int directory, long end, DataPlaces.Left left) throws FsException {
    for (FileName name : names(directory)) {
      NodeData.Id id = parse(name.toString());
      if (id == null || id.generation() >= end) {
        continue;
      }
      boolean isKnown = left.isKnown(this, id);
      try {
        if (isKnown) {
          charge(calls.status(directory, name).attributes().blocks() * LocalData.BLOCK_BYTES);
        } else {
          log.info("{}: removing an unknown data file: {}", name(), name);
          calls.unlink(directory, name);
        }
      } catch (FsException e) {
        if (e.errno() != Errno.ENOENT) {
          throw e;
        }
      }
    }
  }

  /** The data file with this name; null for a foreign name. */
  private static NodeData.@Nullable Id parse(String name) {
    int dot = name.indexOf('.');
    try {
      return dot < 0
          ? null
          : new NodeData.Id(
              Long.parseUnsignedLong(name.substring(0, dot), 16),
              Long.parseUnsignedLong(name.substring(dot + 1), 16));
    } catch (NumberFormatException e) {
      return null;
    }
  }
}
