package io.pmfs.source;

/**
 * The result of statvfs(3) for the backing store's file system; counts of blocks are in units of
 * {@code fragmentSize} bytes.
 */
public record StoreStatistics(
    long blockSize,
    long fragmentSize,
    long blocks,
    long blocksFree,
    long blocksAvailable,
    long files,
    long filesFree,
    long nameMaximum) {}
