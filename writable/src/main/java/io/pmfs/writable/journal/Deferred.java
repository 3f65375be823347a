package io.pmfs.writable.journal;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * The changes that the committer skipped: refused ones and those that depend on them. They stay in
 * the journal. Changed while the state's lock is held; read by many threads.
 */
public final class Deferred {
  /** Limit of deferred changes; the committer waits when it is reached. */
  public static final int MOST = 50_000;

  /**
   * A deferred change.
   *
   * @param refusal null if it only depends on another one
   */
  public record Entry(Change change, @Nullable Refusal refusal) {
    /** Whether the source refuses the change now and may accept it later. */
    public boolean mayPass() {
      return refusal != null && !refusal.isAside();
    }

    public boolean isAside() {
      return refusal != null && refusal.isAside();
    }

    public Set<Dependency> leaves() {
      Set<Dependency> leaves = change.leaves();
      if (mayPass()) {
        leaves.add(new Dependency.Parts(change.uid()));
      }
      return leaves;
    }
  }

  private final ConcurrentSkipListMap<Long, Entry> entries = new ConcurrentSkipListMap<>();
  private final Map<Dependency, ConcurrentSkipListSet<Long>> left = new ConcurrentHashMap<>();
  private final AtomicLong settled = new AtomicLong();

  public void put(Entry entry) {
    long sequence = entry.change().sequence();
    Entry before = entries.put(sequence, entry);
    if (before != null) {
      unlist(before);
    }
    for (Dependency one : entry.leaves()) {
      left.computeIfAbsent(one, key -> new ConcurrentSkipListSet<>()).add(sequence);
    }
  }

  /** Removes a change that is at the source, or was given up. */
  public void remove(long sequence) {
    Entry before = entries.remove(sequence);
    if (before != null) {
      unlist(before);
      settled.incrementAndGet();
    }
  }

  private void unlist(Entry entry) {
    for (Dependency one : entry.leaves()) {
      ConcurrentSkipListSet<Long> sequences = left.get(one);
      if (sequences != null) {
        sequences.remove(entry.change().sequence());
        if (sequences.isEmpty()) {
          left.remove(one);
        }
      }
    }
  }

  /** Replaces all changes. Readers miss none that stays: without any, all is at the source. */
  void set(List<Entry> all) {
    Set<Long> gone = new HashSet<>(entries.keySet());
    for (Entry entry : all) {
      put(entry);
      gone.remove(entry.change().sequence());
    }
    gone.forEach(this::remove);
    settled.incrementAndGet();
  }

  public long settledCount() {
    return settled.get();
  }

  public boolean isEmpty() {
    return entries.isEmpty();
  }

  public int size() {
    return entries.size();
  }

  public boolean contains(long sequence) {
    return entries.containsKey(sequence);
  }

  @Nullable
  public Entry get(long sequence) {
    return entries.get(sequence);
  }

  /** The first change at or after a sequence number; null if there is none. */
  @Nullable
  public Entry from(long sequence) {
    Map.Entry<Long, Entry> found = entries.ceilingEntry(sequence);
    return found == null ? null : found.getValue();
  }

  public Collection<Entry> all() {
    return entries.values();
  }

  /** Those of a node, in order. */
  public List<Change> of(long inode) {
    List<Change> found = new ArrayList<>();
    for (long sequence : sequences(new Dependency.Node(inode))) {
      Entry entry = entries.get(sequence);
      if (entry != null) {
        found.add(entry.change());
      }
    }
    return found;
  }

  private Set<Long> sequences(Dependency dependency) {
    ConcurrentSkipListSet<Long> found = left.get(dependency);
    return found == null ? Set.of() : found;
  }

  /** Whether changes of a node, or of names in a directory, are deferred. */
  public boolean concerns(long inode) {
    return !entries.isEmpty()
        && (left.containsKey(new Dependency.Node(inode))
            || left.containsKey(new Dependency.Entries(inode)));
  }

  /** Like {@link #concerns(long)}, ignoring some changes. */
  public boolean concerns(long inode, Set<Long> except) {
    return concerns(inode) && !except.containsAll(concerning(inode));
  }

  /** The changes of a node, and of names in a directory, in order. */
  public Set<Long> concerning(long inode) {
    Set<Long> found = new TreeSet<>(sequences(new Dependency.Node(inode)));
    found.addAll(sequences(new Dependency.Entries(inode)));
    return found;
  }

  /** Whether changes of a name are deferred, ignoring some changes. */
  public boolean concerns(At name, Set<Long> except) {
    return !except.containsAll(sequences(new Dependency.Name(name)));
  }

  /** A deferred change of a node or name of another one, ignoring some changes; null if none. */
  @Nullable
  public Entry ofSame(Change change, Set<Long> except) {
    for (Dependency one : change.needs()) {
      if (one instanceof Dependency.Node || one instanceof Dependency.Name) {
        for (long sequence : sequences(one)) {
          if (!except.contains(sequence)) {
            return entries.get(sequence);
          }
        }
      }
    }
    return null;
  }

  /**
   * The first deferred change that another one depends on.
   *
   * @param except changes that are made together with it
   * @return null if there is none
   */
  @Nullable
  public Entry before(Change change, Set<Long> except) {
    if (entries.isEmpty()) {
      return null;
    }
    long first = change.sequence();
    for (Dependency one : change.needs()) {
      for (long sequence : sequences(one)) {
        if (sequence >= first) {
          break;
        }
        if (!except.contains(sequence)) {
          first = sequence;
          break;
        }
      }
    }
    return first == change.sequence() ? null : entries.get(first);
  }
}
