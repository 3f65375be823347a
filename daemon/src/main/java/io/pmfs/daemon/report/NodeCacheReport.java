package io.pmfs.daemon.report;

import io.pmfs.cache.CacheClient;
import org.jspecify.annotations.Nullable;

/** What the cache of the node, {@code pmfs node-cache}, did for a mount. */
public record NodeCacheReport(
    @Figure(
            value =
                "bytes of contents that the daemon, not the kernel by itself, read from copies of the"
                    + " node's cache",
            metric = "pmfs_node_cache_bytes_total")
        long bytes,
    @Figure(
            value = "files that the cache was asked for",
            metric = "pmfs_node_cache_questions_total")
        long asked,
    @Figure(
            value = "of these, those of which it had no copy then",
            metric = "pmfs_node_cache_refusals_total")
        long refused,
    @Figure("why it does not answer; null while it does, or if it was not needed yet")
        @Nullable String problem) {
  /** The report of a mount; null without a cache. */
  public static @Nullable NodeCacheReport of(CacheClient.@Nullable Statistics cache) {
    return cache == null
        ? null
        : new NodeCacheReport(cache.copyBytes(), cache.asked(), cache.refused(), cache.problem());
  }
}
