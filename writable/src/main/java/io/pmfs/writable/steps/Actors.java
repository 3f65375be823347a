package io.pmfs.writable.steps;

import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.journal.Change;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * As whom changes are made at the source: as the user who made them in the mount, and if the source
 * does not let that user, as the daemon: the mount's kernel has allowed them, by groups and
 * capabilities of a process that may have ended since. Safe for use by many threads.
 */
public final class Actors {
  private final OutputCalls calls;
  private final Set<Long> daemons = ConcurrentHashMap.newKeySet();

  public Actors(OutputCalls calls) {
    this.calls = calls;
  }

  public OutputCalls.Acting as(Change change) {
    return daemons.contains(change.sequence()) ? () -> {} : calls.actAs(change.uid(), change.gid());
  }

  /** From now on a change is made as the daemon; returns false if it was before. */
  public boolean useDaemon(Change change) {
    return daemons.add(change.sequence());
  }

  public void forget(Change change) {
    daemons.remove(change.sequence());
  }
}
