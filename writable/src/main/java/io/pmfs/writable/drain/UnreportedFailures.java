package io.pmfs.writable.drain;

import io.pmfs.posix.FsException;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Deferred;
import io.pmfs.writable.journal.Refusal;
import io.pmfs.writable.journal.State;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Failures of attempts to bring files to the source, each kept until a close or fsync of the file
 * has reported it once. Thread-safe.
 */
public final class UnreportedFailures {
  private static final int KEPT = 1000;

  private final State state;
  private final Map<Long, FsException> failures = new LinkedHashMap<>(); // GUARDED_BY(this)

  public UnreportedFailures(State state) {
    this.state = state;
  }

  public synchronized void add(long inode, FsException failure) {
    if (failures.size() >= KEPT) {
      failures.remove(failures.keySet().iterator().next());
    }
    failures.put(inode, failure);
  }

  public synchronized void forget(long inode) {
    failures.remove(inode);
  }

  /** Throws the unreported failure of a file, if there is one. */
  public synchronized void report(long inode) throws FsException {
    FsException failure = failures.remove(inode);
    if (failure != null) {
      throw new FsException(failure.errno(), "the source: " + failure.getMessage(), failure);
    }
  }

  /** Throws a file's unreported failure, or the refusal of a change that waits. */
  public void check(long inode) throws FsException {
    report(inode);
    for (Change change : state.deferred().of(inode)) {
      Deferred.Entry entry = state.deferred().get(change.sequence());
      Refusal refusal = entry == null ? null : entry.refusal();
      if (refusal != null) {
        throw refusal.toException();
      }
    }
  }
}
