package io.pmfs.metadata;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/**
 * The inodes that were written or read most recently: a listing asks for the inodes that its import
 * has just written, and a read for the inode that its lookup found. Safe for use by many threads.
 *
 * <p>INVARIANT: never older than the database. Each writer of an inode calls {@link #put} or {@link
 * #remove} after the write; an inode that is loaded meanwhile is cached before that call, and so
 * replaced.
 */
final class RecentInodes {
  /** About 400 bytes each. */
  private static final int LIMIT = 16_384;

  private final Cache<Long, Inode> inodes =
      CacheBuilder.newBuilder().maximumSize(LIMIT).concurrencyLevel(64).build();

  /** The cached inode, or else the loaded one; null if there is none. */
  @Nullable Inode get(long number, LongFunction<@Nullable Inode> load) {
    Inode kept = inodes.getIfPresent(number);
    // Loads with the entry locked, so that no write comes between loading and caching.
    return kept != null ? kept : inodes.asMap().computeIfAbsent(number, load::apply);
  }

  /** The cached inode; null if it is not cached. */
  @Nullable Inode get(long number) {
    return inodes.getIfPresent(number);
  }

  void put(Inode inode) {
    inodes.put(inode.number(), inode);
  }

  void remove(long number) {
    inodes.invalidate(number);
  }
}
