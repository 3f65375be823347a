package io.pmfs.tier;

/**
 * How often the backing store was asked for what since the start, and for how many bytes of
 * contents.
 */
public record SourceOperations(
    long opens,
    long reads,
    long bytes,
    long stats,
    long lists,
    long readlinks,
    long xattrs,
    long statfs,
    long seeks) {

  /** All requests together. */
  public long total() {
    return opens + reads + stats + lists + readlinks + xattrs + statfs + seeks;
  }
}
