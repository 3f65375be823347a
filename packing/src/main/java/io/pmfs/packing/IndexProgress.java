package io.pmfs.packing;

/**
 * How far the building of an index is.
 *
 * @param bytes of the shards that were passed over, of {@code totalBytes}
 */
public record IndexProgress(
    int shards, int totalShards, long bytes, long totalBytes, long members) {}
