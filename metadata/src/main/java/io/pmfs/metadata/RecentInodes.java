package io.pmfs.metadata;

import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/**
 * Inodes that were written or read recently: a listing asks for the inodes that its import has just
 * written, and a read for the inode that its lookup found. Inode numbers are dense, so each number
 * has one possible place, and is found without a lock or an object. Thread-safe.
 *
 * <p>INVARIANT: never older than the database. Each writer of an inode calls {@link #put} or {@link
 * #remove} after the write; an inode that is loaded meanwhile is cached before that call, and so
 * replaced.
 */
final class RecentInodes {
  /** A power of two; an inode takes about 400 bytes. */
  private static final int PLACES = 16_384;

  /** A power of two. */
  private static final int LOCKS = 256;

  private final AtomicReferenceArray<@Nullable Inode> inodes = new AtomicReferenceArray<>(PLACES);
  private final Object[] locks = new Object[LOCKS];

  RecentInodes() {
    for (int i = 0; i < LOCKS; i++) {
      locks[i] = new Object();
    }
  }

  /** The cached inode, or else the loaded one; null if there is none. */
  @Nullable Inode get(long number, LongFunction<@Nullable Inode> load) {
    Inode kept = get(number);
    if (kept != null) {
      return kept;
    }
    // With the place locked, so that no write comes between load and insertion.
    synchronized (lock(number)) {
      kept = get(number);
      if (kept == null) {
        kept = load.apply(number);
        if (kept != null) {
          inodes.set(place(number), kept);
        }
      }
      return kept;
    }
  }

  /** The cached inode; null if it is not cached. */
  @Nullable Inode get(long number) {
    Inode kept = inodes.get(place(number));
    return kept != null && kept.number() == number ? kept : null;
  }

  void put(Inode inode) {
    synchronized (lock(inode.number())) {
      inodes.set(place(inode.number()), inode);
    }
  }

  void remove(long number) {
    synchronized (lock(number)) {
      if (get(number) != null) {
        inodes.set(place(number), null);
      }
    }
  }

  private static int place(long number) {
    return (int) number & (PLACES - 1);
  }

  private Object lock(long number) {
    return locks[place(number) & (LOCKS - 1)];
  }
}
