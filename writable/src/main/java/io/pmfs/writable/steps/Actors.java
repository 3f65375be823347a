package io.pmfs.writable.steps;

import io.pmfs.metadata.Attributes;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.journal.Change;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The user as whom each change is made at the source: the user who made it in the mount or, if the
 * source refuses that user, the daemon. The mount's kernel has already allowed the change, by
 * groups and capabilities of a process that may have ended. Thread-safe.
 */
public final class Actors {
  private static final int ROOT = 0;

  private final OutputCalls calls;
  private final Set<Long> daemons = ConcurrentHashMap.newKeySet();

  public Actors(OutputCalls calls) {
    this.calls = calls;
  }

  public OutputCalls.Acting as(Change change) {
    return daemons.contains(change.sequence()) ? () -> {} : calls.actAs(change.uid(), change.gid());
  }

  /** Makes a change as the daemon from now on; returns false if it already was. */
  public boolean useDaemon(Change change) {
    return daemons.add(change.sequence());
  }

  /**
   * Whether a node with this owner may be what a change has made: another user's may have its name.
   *
   * @param isMadeNow by a call that has just succeeded
   */
  boolean mayHaveMade(Change.Made change, Attributes there, boolean isMadeNow) {
    return there.uid() == change.uid()
        || there.uid() == change.attributes().uid()
        || (isMadeNow && daemons.contains(change.sequence()) && there.uid() == ROOT);
  }

  public void forget(Change change) {
    daemons.remove(change.sequence());
  }
}
