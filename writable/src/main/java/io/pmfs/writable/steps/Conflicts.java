package io.pmfs.writable.steps;

import io.pmfs.writable.DrainStatus.Failure;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Conflicts with changes of other programs at the source, and changes that were given up. Counted
 * until the user acknowledges them; the last ones are reported. Thread-safe.
 */
public final class Conflicts {
  private static final Logger log = LoggerFactory.getLogger(Conflicts.class);

  private static final int MOST_REPORTED = 100;

  private final AtomicLong count = new AtomicLong();
  private final AtomicLong givenUp = new AtomicLong();
  private final ArrayDeque<Failure> last = new ArrayDeque<>(); // GUARDED_BY(this)

  public void add(String path, String reason, boolean isGivenUp) {
    log.warn(
        "{}: {}: {}", isGivenUp ? "not at the source" : "conflict at the source", path, reason);
    restore(path, reason, isGivenUp);
  }

  /** Restores a conflict of an earlier process. */
  public synchronized void restore(String path, String reason, boolean isGivenUp) {
    (isGivenUp ? givenUp : count).incrementAndGet();
    if (last.size() == MOST_REPORTED) {
      last.remove();
    }
    last.add(new Failure(path, reason, null));
  }

  /** Clears the counts and the reported conflicts. */
  public synchronized void acknowledge() {
    count.set(0);
    givenUp.set(0);
    last.clear();
  }

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
