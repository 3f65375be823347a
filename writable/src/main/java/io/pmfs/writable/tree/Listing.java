package io.pmfs.writable.tree;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.Stat;
import io.pmfs.writable.journal.Tables;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The names of a directory of the source, ordered by position, and the changes that this mount has
 * made there since. Thread-safe.
 */
public final class Listing {
  private static final Comparator<Child> ORDER =
      Comparator.comparingLong(Child::position).thenComparing(Child::name);

  /** Beyond this many changes, they are packed too. */
  private static final int FEW_CHANGES = 4096;

  private static final int FEW_PART = 8;

  private static final long NEVER = -1;

  /** Granularity of time stamps of file systems. */
  private static final long COARSE_MILLIS = 1100;

  private final ReentrantLock loading = new ReentrantLock();

  private PackedNames listed = new PackedNames(); // GUARDED_BY(this)
  private TreeMap<Child, Child> changes = new TreeMap<>(ORDER); // GUARDED_BY(this)
  private @Nullable List<Child> changesMeanwhile; // GUARDED_BY(this)
  private volatile int count;

  // Time of the last look, and the directory's state then; GUARDED_BY(loading).
  private volatile long checkedMillis = NEVER;
  private long listedMillis;
  private volatile long costMillis;
  private @Nullable Stat stat;
  private volatile boolean isListed;

  /**
   * A name at the source.
   *
   * @param inode st_ino at the source; 0 for a removed name
   * @param type null if the source did not report it
   */
  public record Child(long position, FileName name, long inode, @Nullable FileType type) {
    public static Child of(FileName name, long inode, @Nullable FileType type) {
      return new Child(Tables.position(name), name, inode, type);
    }
  }

  // ---- reading the source

  /** Taken by the thread that reads the directory. */
  public void lock() {
    loading.lock();
  }

  public void unlock() {
    loading.unlock();
  }

  public boolean isListed() {
    return isListed;
  }

  /** Whether the last look is recent, absolutely or relative to its cost. */
  public boolean isFresh(long nowMillis, long freshMillis, long costFactor) {
    return isListed
        && checkedMillis != NEVER
        && nowMillis >= checkedMillis
        && nowMillis - checkedMillis < Math.max(freshMillis, costFactor * costMillis);
  }

  /** Whether a directory in this state still has the listed names. */
  public boolean isOf(Stat now) {
    Stat before = stat;
    return isListed
        && before != null
        && before.isUnchanged(now)
        && listedMillis - now.attributes().modificationTime().toEpochMilli() > COARSE_MILLIS;
  }

  /**
   * Records that the names were read.
   *
   * @param now the directory's state before; null if it did not exist
   */
  public void read(@Nullable Stat now, long nowMillis) {
    stat = now;
    listedMillis = nowMillis;
  }

  public void looked(long beginMillis, long endMillis) {
    checkedMillis = endMillis;
    costMillis = endMillis - beginMillis;
  }

  // ---- names

  /** From now on, changes are also applied to the names being read. */
  public synchronized void beginLoading() {
    changesMeanwhile = new ArrayList<>();
  }

  /**
   * Takes the names that were read.
   *
   * @param next null if they are unchanged
   */
  public synchronized void endLoading(@Nullable PackedNames next) {
    List<Child> meanwhile = changesMeanwhile;
    changesMeanwhile = null;
    if (next == null) {
      return;
    }
    next.sort();
    listed = next;
    changes = new TreeMap<>(ORDER);
    if (meanwhile != null) {
      for (Child child : meanwhile) {
        changes.remove(child);
        changes.put(child, child);
      }
    }
    count = listed.count() + changes.size();
    isListed = true;
  }

  /** Starts empty for a directory that was just created. */
  public synchronized void makeEmpty() {
    isListed = true;
  }

  public synchronized void add(FileName name, long inode, FileType type) {
    change(Child.of(name, inode, type));
  }

  public synchronized void remove(FileName name) {
    change(Child.of(name, 0, null));
  }

  private void change(Child child) { // GUARDED_BY(this)
    if (changesMeanwhile != null) {
      changesMeanwhile.add(child);
    }
    changes.remove(child);
    changes.put(child, child);
    if (changes.size() > Math.max(FEW_CHANGES, listed.count() / FEW_PART)) {
      pack();
    }
    count = listed.count() + changes.size();
  }

  private void pack() { // GUARDED_BY(this)
    PackedNames packed = new PackedNames();
    for (int i = 0; i < listed.count(); i++) {
      Child child = listed.get(i);
      if (!changes.containsKey(child)) {
        packed.add(child);
      }
    }
    for (Child child : changes.values()) {
      if (child.inode() != 0) {
        packed.add(child);
      }
    }
    packed.sort();
    listed = packed;
    changes = new TreeMap<>(ORDER);
  }

  public synchronized @Nullable Child find(FileName name) {
    Child key = Child.of(name, 0, null);
    Child changed = changes.get(key);
    if (changed != null) {
      return changed.inode() == 0 ? null : changed;
    }
    return listed.find(key.position(), name);
  }

  public synchronized List<Child> from(long position, int limit) {
    List<Child> found = new ArrayList<>();
    Iterator<Child> changed =
        changes.tailMap(new Child(position, Inode.NO_NAME, 0, null), true).values().iterator();
    Child next = changed.hasNext() ? changed.next() : null;
    int at = listed.firstFrom(position);
    while (found.size() < limit) {
      Child below = at < listed.count() ? listed.get(at) : null;
      if (below == null && next == null) {
        break;
      }
      int order = below == null ? 1 : next == null ? -1 : ORDER.compare(below, next);
      if (order < 0 && below != null) {
        found.add(below);
      } else if (next != null && next.inode() != 0) {
        found.add(next);
      }
      at += order <= 0 ? 1 : 0;
      if (order >= 0) {
        next = changed.hasNext() ? changed.next() : null;
      }
    }
    return found;
  }

  public int size() {
    return count;
  }
}
