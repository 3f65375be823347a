package io.pmfs.shards;

/**
 * The progress of an index build.
 *
 * @param bytes of the shards that were scanned, of {@code totalBytes}
 */
public record IndexProgress(
    int shards, int totalShards, long bytes, long totalBytes, long members) {}
