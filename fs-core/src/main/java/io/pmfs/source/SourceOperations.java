package io.pmfs.source;

/**
 * The number of requests to the backing store since the start, by kind, and the bytes of content
 * read.
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

  public long total() {
    return opens + reads + stats + lists + readlinks + xattrs + statfs + seeks;
  }
}
