package io.pmfs.writable.tree;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Directories whose times at the source differ from the mount's, because temporary files were
 * created and removed there. Their times at the source are not shown; when the last change that
 * caused this is made, the directory gets the mount's times. Thread-safe.
 */
public final class Disturbed {
  /** By sequence number of the causing change. */
  private final Map<Long, Set<Long>> directories = new HashMap<>(); // GUARDED_BY(this)

  /** Number of causing changes, by directory. */
  private final Map<Long, Integer> causes = new HashMap<>(); // GUARDED_BY(this)

  /** Directories that no change will correct. */
  private final Set<Long> left = new HashSet<>(); // GUARDED_BY(this)

  public synchronized void add(long sequence, long directory) {
    if (directories.computeIfAbsent(sequence, key -> new HashSet<>(4)).add(directory)) {
      causes.merge(directory, 1, Integer::sum);
    }
  }

  public synchronized Set<Long> of(Collection<Long> sequences) {
    Set<Long> found = new HashSet<>();
    sequences.forEach(sequence -> found.addAll(directories.getOrDefault(sequence, Set.of())));
    return found;
  }

  /** Whether other changes than these affect a directory and will correct it. */
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

  /** A change was made, and its directories are corrected. */
  public synchronized void remove(long sequence) {
    Set<Long> right = directories.remove(sequence);
    if (right != null) {
      right.forEach(
          directory -> causes.computeIfPresent(directory, (key, n) -> n > 1 ? n - 1 : null));
    }
  }

  /** A change will not be made now; its directories are {@linkplain #left} to be corrected. */
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
