package io.pmfs.writable.tree;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Directories that have other times at the source than the mount has for them, as names come and go
 * there that are no change of the mount at that moment: temporary files. While a directory is among
 * these, its times there are not shown; when the last change that is the cause is made, it gets
 * those of the mount. Safe for use by many threads.
 */
public final class Disturbed {
  /** By sequence number of the change that is the cause. */
  private final Map<Long, Set<Long>> directories = new HashMap<>(); // GUARDED_BY(this)

  /** How many changes are the cause, by directory. */
  private final Map<Long, Integer> causes = new HashMap<>(); // GUARDED_BY(this)

  /** Those that no change will set right. */
  private final Set<Long> left = new HashSet<>(); // GUARDED_BY(this)

  public synchronized void add(long sequence, long directory) {
    if (directories.computeIfAbsent(sequence, key -> new HashSet<>(4)).add(directory)) {
      causes.merge(directory, 1, Integer::sum);
    }
  }

  /** What some changes have disturbed. */
  public synchronized Set<Long> of(Collection<Long> sequences) {
    Set<Long> found = new HashSet<>();
    sequences.forEach(sequence -> found.addAll(directories.getOrDefault(sequence, Set.of())));
    return found;
  }

  /** Whether a directory is disturbed by other changes than these, which will set it right. */
  public synchronized boolean isByOthers(long directory, Collection<Long> sequences) {
    long own =
        sequences.stream()
            .filter(one -> directories.getOrDefault(one, Set.of()).contains(directory))
            .count();
    return causes.getOrDefault(directory, 0) > own;
  }

  public synchronized boolean contains(long directory) {
    return causes.containsKey(directory) || left.contains(directory);
  }

  /** A change is made, and what it disturbed is right again. */
  public synchronized void remove(long sequence) {
    Set<Long> right = directories.remove(sequence);
    if (right != null) {
      right.forEach(
          directory -> causes.computeIfPresent(directory, (key, n) -> n > 1 ? n - 1 : null));
    }
  }

  /** A change will not be made now; what it disturbed is {@linkplain #left} to be set right. */
  public synchronized void leave(long sequence) {
    left.addAll(directories.getOrDefault(sequence, Set.of()));
    remove(sequence);
  }

  /** Returns false if the directory is {@linkplain #left} already. */
  public synchronized boolean leaveDirectory(long directory) {
    return left.add(directory);
  }

  public synchronized List<Long> left() {
    return new ArrayList<>(left);
  }

  public synchronized void removeLeft(long directory) {
    left.remove(directory);
  }
}
