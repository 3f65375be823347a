package io.pmfs.metadata;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/**
 * The inodes that were written or read last: a listing asks for what its import has just written,
 * and a read for what its lookup found. Safe for use by many threads.
 *
 * <p>INVARIANT: never older than the database. Whoever writes an inode there calls {@link #put} or
 * {@link #remove} afterwards; what is loaded meanwhile is in place before, and so replaced.
 */
final class RecentInodes {
  /** About 400 bytes each. */
  private static final int LIMIT = 16_384;

  private final Cache<Long, Inode> inodes =
      CacheBuilder.newBuilder().maximumSize(LIMIT).concurrencyLevel(64).build();

  /** The inode as kept, or else as loaded; null if there is none. */
  @Nullable Inode get(long number, LongFunction<@Nullable Inode> load) {
    Inode kept = inodes.getIfPresent(number);
    // Loaded with the entry locked, so that no write comes between loading and keeping.
    return kept != null ? kept : inodes.asMap().computeIfAbsent(number, load::apply);
  }

  /** The inode as kept; null if it is not. */
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
