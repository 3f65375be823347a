package io.pmfs.writable.data;

import io.pmfs.metadata.Attributes;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.journal.DataRow;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.places.DataPlaces;
import io.pmfs.writable.tree.Extended;
import io.pmfs.writable.tree.SourceTree;
import io.pmfs.writable.tree.WrittenFiles;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The files in use. A file stays until its last use ends. The number of open data files is limited.
 * Thread-safe.
 */
@SuppressWarnings("try")
public final class OutputFiles implements WrittenFiles {
  private final State state;
  private final SourceTree tree;
  private final DataPlaces places;
  private final Announcer announcer;

  /** Limit of open data files; reads need descriptors, too. */
  private final int mostOpen;

  private final Map<Long, OutputFile> files = new HashMap<>(); // GUARDED_BY(this)

  /** Files whose data file is open, the earliest opened first. */
  private final Set<OutputFile> open = new LinkedHashSet<>(); // GUARDED_BY(open)

  public OutputFiles(State state, SourceTree tree, DataPlaces places, Extended extended) {
    this.state = state;
    this.tree = tree;
    this.places = places;
    this.announcer = new Announcer(state, extended);
    this.mostOpen = places.calls().mostDataFiles();
  }

  State state() {
    return state;
  }

  public SourceTree tree() {
    return tree;
  }

  DataPlaces places() {
    return places;
  }

  OutputCalls calls() {
    return places.calls();
  }

  // ---- uses

  /** Returns the file; the caller releases it once per call. */
  public synchronized OutputFile acquire(long number) {
    OutputFile file = files.computeIfAbsent(number, key -> new OutputFile(key, this));
    file.beginUse();
    return file;
  }

  public void release(OutputFile file) {
    synchronized (this) {
      if (file.endUse()) {
        files.remove(file.number());
        // Under the lock, so that a file never has two objects at a time.
        file.close();
      }
    }
  }

  public synchronized List<Long> numbers() {
    return new ArrayList<>(files.keySet());
  }

  private synchronized boolean isInUse(long number) {
    return files.containsKey(number);
  }

  /** A file in use, locked exclusively until this is closed. */
  public final class Locked implements AutoCloseable {
    private final OutputFile file;

    private Locked(OutputFile file) {
      this.file = file;
    }

    public OutputFile file() {
      return file;
    }

    @Override
    public void close() {
      file.lock().writeLock().unlock();
      release(file);
    }
  }

  /**
   * Waits until nothing else uses the content of a file.
   *
   * @throws FsException with EINTR if the request or its thread is interrupted meanwhile
   */
  public Locked lock(long number) throws FsException {
    OutputFile file = acquire(number);
    try {
      file.await(file.lock().writeLock());
      return new Locked(file);
    } catch (FsException e) {
      release(file);
      throw e;
    }
  }

  /** Like {@link #lock(long)}, without waiting: null if the content is in use. */
  public @Nullable Locked tryLock(long number) {
    OutputFile file = acquire(number);
    if (file.lock().writeLock().tryLock()) {
      return new Locked(file);
    }
    release(file);
    return null;
  }

  /** Waits a limited time; null also if the file is not in use at all. */
  public @Nullable Locked tryLockUsed(long number, long patienceMillis) throws FsException {
    if (!isInUse(number)) {
      return null;
    }
    OutputFile file = acquire(number);
    boolean isLocked = false;
    try {
      isLocked = file.lock().writeLock().tryLock(patienceMillis, TimeUnit.MILLISECONDS);
      return isLocked ? new Locked(file) : null;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new FsException(Errno.EINTR, "waiting for inode " + number, e);
    } finally {
      if (!isLocked) {
        release(file);
      }
    }
  }

  /** A data file was opened: closes data files that are not being used, if there are too many. */
  void opened(OutputFile file) {
    List<OutputFile> surplus = new ArrayList<>();
    synchronized (open) {
      open.remove(file);
      open.add(file);
      int left = open.size() - mostOpen;
      for (OutputFile one : open) {
        if (left-- <= 0) {
          break;
        }
        surplus.add(one);
      }
    }
    surplus.forEach(OutputFile::park);
  }

  void closed(OutputFile file) {
    synchronized (open) {
      open.remove(file);
    }
  }

  /** Closes what is open; nothing uses the files any more. */
  public void close() {
    List<OutputFile> left;
    synchronized (this) {
      left = new ArrayList<>(files.values());
    }
    left.forEach(OutputFile::close);
  }

  // ---- what the tables do not have yet

  @Override
  public Attributes attributes(Inode inode) throws FsException {
    OutputFile file = acquire(inode.number());
    try {
      return file.shown(inode);
    } finally {
      release(file);
    }
  }

  @Override
  public boolean announce(long number, Caller caller) throws FsException {
    try (Locked locked = lock(number)) {
      return announce(locked.file(), caller);
    }
  }

  /**
   * Announces the present content if it is new. The caller has locked the file.
   *
   * @return whether it was
   */
  public boolean announce(OutputFile file, Caller caller) throws FsException {
    return announcer.announce(file, caller);
  }

  @Override
  public void alone(long number, Action action) throws FsException {
    try (Locked locked = lock(number)) {
      action.run();
    }
  }

  // ---- data files that other nodes keep

  /**
   * Whether a data file that another node has is needed. The node is asked for it from now on: it
   * may have written it under another id.
   *
   * @param place of the node's data files
   */
  public boolean isNeeded(NodeData.Id id, int place) throws FsException {
    DataRow row = state.data(id.inode(), id.generation());
    if (row == null || !places.get(row.place()).isOfNode()) {
      return false;
    }
    if (row.place() != place) {
      moved(id, place);
    }
    return true;
  }

  private void moved(NodeData.Id id, int place) throws FsException {
    try (Locked locked = tryLock(id.inode());
        State.Held held = state.hold()) {
      DataRow row = state.data(id.inode(), id.generation());
      if (locked != null && row != null && places.get(row.place()).isOfNode()) {
        State.Update update = state.update();
        update.data(id.inode(), id.generation(), new DataRow(place, row.waiting()));
        update.commit();
        locked.file().moved();
      }
    }
  }

  @Override
  public void drop(State.Update update, Inode inode) throws FsException {
    DataRow row = inode.generation() == 0 ? null : state.data(inode.number(), inode.generation());
    if (row != null && row.waiting() == 0) {
      Room.discard(update, inode.number(), inode.generation(), row.place());
    }
  }
}
