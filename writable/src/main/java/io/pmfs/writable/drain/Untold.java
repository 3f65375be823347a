package io.pmfs.writable.drain;

import io.pmfs.posix.FsException;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.Deferred;
import io.pmfs.writable.journal.Refusal;
import io.pmfs.writable.journal.State;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * What the source said to the last attempt to bring a file there, until a close or a sync of the
 * file has reported it: once. Safe for use by many threads.
 */
public final class Untold {
  private static final int KEPT = 1000;

  private final State state;
  private final Map<Long, FsException> failures = new LinkedHashMap<>(); // GUARDED_BY(this)

  public Untold(State state) {
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

  /** Throws the failure of a file, if there is one that was not reported. */
  public synchronized void tell(long inode) throws FsException {
    FsException failure = failures.remove(inode);
    if (failure != null) {
      throw new FsException(failure.errno(), "the source: " + failure.getMessage(), failure);
    }
  }

  /** Throws what the source says to a file as long as it does not take it. */
  public void check(long inode) throws FsException {
    tell(inode);
    for (Change change : state.deferred().of(inode)) {
      Deferred.Entry entry = state.deferred().get(change.sequence());
      Refusal refusal = entry == null ? null : entry.refusal();
      if (refusal != null) {
        throw refusal.toException();
      }
    }
  }
}
