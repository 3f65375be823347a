package io.pmfs.writable.drain;

import io.pmfs.posix.FsException;
import io.pmfs.writable.data.Handles;
import io.pmfs.writable.data.OpenFiles;
import io.pmfs.writable.data.OutputFiles;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import java.util.Collection;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Closed files whose content is not in the journal: it could not be recorded, which is retried; or
 * an earlier process ended before it was. Thread-safe.
 */
public final class Unclosed {
  private static final Logger log = LoggerFactory.getLogger(Unclosed.class);

  /** Longer than a node may be away before what it had open counts as closed. */
  private static final long FORMER_MILLIS = 40_000;

  private final State state;
  private final OutputFiles files;
  private final Handles handles;
  private final LostData lost;
  private final Map<Long, Exception> failures = new ConcurrentHashMap<>();

  /**
   * Files that an earlier process left being written. Which of them are still open is unknown: the
   * handle of a program shows when it is used, that of a lost node never. One that does not show in
   * time counts as closed. If it was only idle, its next write begins the next content.
   */
  private final Set<Long> former = ConcurrentHashMap.newKeySet();

  private volatile long beganMillis;
  private volatile boolean hasStopped;

  Unclosed(State state, OutputFiles files, Handles handles, LostData lost) {
    this.state = state;
    this.files = files;
    this.handles = handles;
    this.lost = lost;
  }

  /** Adds the files that an earlier process left being written. */
  public void addFormer(Collection<Long> numbers) {
    beganMillis = state.millis();
    former.addAll(numbers);
  }

  /** Records the content of a file that nothing has open. */
  public void close(long number) throws FsException {
    Inode inode = state.find(number);
    if (inode != null) {
      files.announce(number, OpenFiles.owner(inode));
    }
    failures.remove(number);
  }

  /** Adds a closed file whose content could not be recorded. */
  public void closeLater(long number, Exception why) {
    failures.put(number, why);
  }

  /** Whether a file was closed and its content could not be recorded yet. */
  boolean isClosed(long number) {
    return failures.containsKey(number) && !handles.isWritten(number);
  }

  /** Retries all of them; returns whether none failed. */
  boolean tryAll() {
    failures.keySet().forEach(this::tryToClose);
    former.removeIf(number -> !isLeft(number));
    long passed = state.millis() - beganMillis;
    if (passed >= FORMER_MILLIS / 2 && !hasStopped) {
      hasStopped = true;
      former.forEach(this::stopWriting);
    }
    if (passed < 0 || passed >= FORMER_MILLIS) {
      former.forEach(this::tryToClose);
      former.clear();
    }
    return failures.isEmpty();
  }

  /** Stops a node that writes a file without asking: its next write shows the handle. */
  private void stopWriting(long number) {
    try (OutputFiles.Locked locked = files.tryLock(number)) {
      Inode inode = state.find(number);
      if (locked != null && inode != null && isLeft(number)) {
        locked.file().load(inode);
      }
    } catch (FsException e) {
      log.debug("inode {}: {}", number, e.getMessage());
    }
  }

  private void tryToClose(long number) {
    try {
      close(number);
    } catch (FsException e) {
      log.debug("inode {} is not closed: {}", number, e.getMessage());
      giveUp(number, e);
    }
  }

  private void giveUp(long number, FsException why) {
    try {
      if (lost.giveUpWritten(number)) {
        failures.remove(number);
        return;
      }
    } catch (FsException e) {
      log.debug("inode {} is still needed: {}", number, e.getMessage());
    }
    closeLater(number, why);
  }

  /** Whether a file is still as the earlier process left it. */
  private boolean isLeft(long number) {
    try {
      Inode inode = state.find(number);
      return inode != null
          && inode.is(Inode.WRITING)
          && !inode.isRemoved()
          && !handles.isWritten(number);
    } catch (FsException e) {
      return true;
    }
  }

  /** Whether it is still unknown of some files if they are open. */
  boolean hasFormer() {
    return former.stream().anyMatch(this::isLeft);
  }

  int count() {
    return numbers().size();
  }

  /** The inode numbers. */
  Set<Long> numbers() {
    Set<Long> numbers = new HashSet<>(failures.keySet());
    former.stream().filter(this::isLeft).forEach(numbers::add);
    return numbers;
  }

  /** The inode numbers, and why each file could not be closed. */
  Map<Long, Exception> failures() {
    return Map.copyOf(failures);
  }
}
