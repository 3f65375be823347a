package io.pmfs.writable.steps;

import io.pmfs.writable.DrainStatus.Failure;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Changes that another program made at the source, where this mount changed the same, and changes
 * that the source refused for good. Counted until the user acknowledges them; the last ones are
 * told. Safe for use by many threads.
 */
public final class Conflicts {
  private static final Logger log = LoggerFactory.getLogger(Conflicts.class);

  private static final int TOLD = 100;

  private final AtomicLong count = new AtomicLong();
  private final AtomicLong givenUp = new AtomicLong();
  private final ArrayDeque<Failure> last = new ArrayDeque<>(); // GUARDED_BY(this)

  /** Tells of a conflict at a path of the mount. */
  public void add(String path, String reason, boolean isGivenUp) {
    log.warn(
        "{}: {}: {}", isGivenUp ? "not at the source" : "conflict at the source", path, reason);
    restore(path, reason, isGivenUp);
  }

  /** Tells of a conflict of a former process again. */
  public synchronized void restore(String path, String reason, boolean isGivenUp) {
    (isGivenUp ? givenUp : count).incrementAndGet();
    if (last.size() == TOLD) {
      last.remove();
    }
    last.add(new Failure(path, reason, null));
  }

  /** Those until now are no longer told. */
  public synchronized void acknowledge() {
    count.set(0);
    givenUp.set(0);
    last.clear();
  }

  /** Changes that the source cannot make. */
  public long givenUpCount() {
    return givenUp.get();
  }

  public long count() {
    return count.get();
  }

  public synchronized List<Failure> last() {
    return new ArrayList<>(last);
  }
}
