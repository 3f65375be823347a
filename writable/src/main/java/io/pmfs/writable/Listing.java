package io.pmfs.writable;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The names of a directory of the source, in the order of their positions, and the changes that
 * this mount has made there since they were listed. Safe for use by many threads.
 */
final class Listing {
  private static final Comparator<Child> ORDER =
      Comparator.comparingLong(Child::position).thenComparing(Child::name);

  /** Held while the directory is read. */
  final ReentrantLock loading = new ReentrantLock();

  private TreeMap<Child, Child> children = new TreeMap<>(ORDER); // GUARDED_BY(this)
  private @Nullable List<Child> changesMeanwhile; // GUARDED_BY(this)
  private volatile int count;

  // The time of the last look, and what the directory was then; GUARDED_BY(loading).
  long checkedMillis = Long.MIN_VALUE;
  long listedMillis;
  long costMillis;
  @Nullable Stat stat;
  volatile boolean isListed;

  /**
   * A name at the source.
   *
   * @param inode st_ino at the source; 0 stands for a name that is gone
   * @param type null if the source did not say
   */
  record Child(long position, FileName name, long inode, @Nullable FileType type) {
    static Child of(FileName name, long inode, @Nullable FileType type) {
      return new Child(Tables.position(name), name, inode, type);
    }
  }

  /** From now on, changes are applied to what is being listed, too. */
  synchronized void beginLoading() {
    changesMeanwhile = new ArrayList<>();
  }

  synchronized void endLoading(@Nullable List<Child> listed) {
    List<Child> changes = changesMeanwhile;
    changesMeanwhile = null;
    if (listed == null) {
      return;
    }
    TreeMap<Child, Child> next = new TreeMap<>(ORDER);
    for (Child child : listed) {
      next.put(child, child);
    }
    children = next;
    if (changes != null) {
      changes.forEach(this::apply);
    }
    count = children.size();
    isListed = true;
  }

  synchronized void add(FileName name, long inode, FileType type) {
    change(Child.of(name, inode, type));
  }

  synchronized void remove(FileName name) {
    change(Child.of(name, 0, null));
  }

  private void change(Child child) { // GUARDED_BY(this)
    if (changesMeanwhile != null) {
      changesMeanwhile.add(child);
    }
    apply(child);
    count = children.size();
  }

  private void apply(Child child) { // GUARDED_BY(this)
    children.remove(child);
    if (child.inode() != 0) {
      children.put(child, child);
    }
  }

  synchronized @Nullable Child find(FileName name) {
    return children.get(Child.of(name, 0, null));
  }

  /** The first names whose positions are at or behind this one. */
  synchronized List<Child> from(long position, int limit) {
    List<Child> found = new ArrayList<>();
    Child first = new Child(position, Inode.NO_NAME, 0, null);
    for (Child child : children.tailMap(first, true).keySet()) {
      found.add(child);
      if (found.size() == limit) {
        break;
      }
    }
    return found;
  }

  int size() {
    return count;
  }
}
