package io.pmfs.cli.requests;

import com.google.common.cache.Cache;
import com.google.common.cache.CacheBuilder;
import io.pmfs.metadata.FileName;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;

/** Paths of inodes, which stay while a dataset is mounted. For one thread. */
final class RequestPaths {
  /** About 300 bytes each. */
  private static final int MOST = 8192;

  private final LongFunction<@Nullable FileName> namespace;
  private final Cache<Long, FileName> known = CacheBuilder.newBuilder().maximumSize(MOST).build();

  /**
   * Paths that somebody else knows.
   *
   * @param namespace the path of an inode below the root; null if there is none
   */
  RequestPaths(LongFunction<@Nullable FileName> namespace) {
    this.namespace = namespace;
  }

  /** The path of an inode; null if it has none. */
  @Nullable FileName of(long inode) {
    FileName path = known.getIfPresent(inode);
    if (path == null) {
      path = namespace.apply(inode);
      if (path != null) {
        known.put(inode, path);
      }
    }
    return path;
  }
}
