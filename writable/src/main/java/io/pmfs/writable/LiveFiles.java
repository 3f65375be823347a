package io.pmfs.writable;

import io.pmfs.tier.FsException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The files in use. A file stays until its last use ends. Safe for use by many threads. */
public final class LiveFiles {
  private final Map<Long, LiveFile> files = new HashMap<>(); // GUARDED_BY(this)
  private final LastUse lastUse;

  /** Closes what a file has open; the caller has its last use. */
  public interface LastUse {
    void end(LiveFile file);
  }

  public LiveFiles(LastUse lastUse) {
    this.lastUse = lastUse;
  }

  /** The file, which the caller releases once for each call. */
  public synchronized LiveFile acquire(long number) {
    LiveFile file = files.computeIfAbsent(number, LiveFile::new);
    file.users++;
    return file;
  }

  /** The same, if it is in use already. */
  public synchronized @Nullable LiveFile acquireKnown(long number) {
    LiveFile file = files.get(number);
    if (file != null) {
      file.users++;
    }
    return file;
  }

  public synchronized @Nullable LiveFile peek(long number) {
    return files.get(number);
  }

  /** Ends one use. */
  public void release(LiveFile file) {
    synchronized (this) {
      file.users--;
      if (file.users > 0) {
        return;
      }
      files.remove(file.number);
      // While others wait for a new object of the same file, so that there is one at a time.
      lastUse.end(file);
    }
  }

  public synchronized List<LiveFile> all() {
    List<LiveFile> copy = new ArrayList<>(files.values());
    copy.forEach(file -> file.users++);
    return copy;
  }

  /** Work with a file that the caller does not otherwise use. */
  public interface Work<T> {
    T with(LiveFile file) throws FsException;
  }

  /** Runs while the file is in use and locked. */
  public <T> T exclusively(long number, Work<T> work) throws FsException {
    LiveFile file = acquire(number);
    file.lock.writeLock().lock();
    try {
      return work.with(file);
    } finally {
      file.lock.writeLock().unlock();
      release(file);
    }
  }
}
