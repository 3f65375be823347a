package io.pmfs.daemon.report;

import io.pmfs.cache.CacheClient;
import org.jspecify.annotations.Nullable;

/** A mount's use of the node's cache, {@code pmfs node-cache}. */
public record NodeCacheReport(
    @Figure(
            value =
                "bytes of contents that the daemon, not the kernel by itself, read from copies of"
                    + " the node's cache",
            metric = "pmfs_node_cache_bytes_total")
        long bytes,
    @Figure(value = "requests to the cache for a file", metric = "pmfs_node_cache_questions_total")
        long asked,
    @Figure(
            value = "of these, requests for which it had no copy",
            metric = "pmfs_node_cache_refusals_total")
        long refused,
    @Figure("why it does not answer; null if it answers or has not been used yet")
        @Nullable String problem) {
  public static @Nullable NodeCacheReport of(CacheClient.@Nullable Statistics cache) {
    return cache == null
        ? null
        : new NodeCacheReport(cache.copyBytes(), cache.asked(), cache.refused(), cache.problem());
  }
}
