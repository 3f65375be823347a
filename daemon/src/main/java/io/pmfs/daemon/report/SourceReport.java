package io.pmfs.daemon.report;

import io.pmfs.source.SourceOperations;
import org.jspecify.annotations.Nullable;

/** The source as the daemon sees it. */
public record SourceReport(
    Operations sourceOperations,
    @Figure(
            "why a daemon that took over the mount cannot reach the source; it keeps trying, and"
                + " serves what its records and tiers have")
        @Nullable String sourceAbsence,
    @Figure(
            value =
                "the least number of files whose inode numbers changed at the source while size and"
                    + " times did not; 0 if its numbers seem stable; null for a writable mount",
            metric = "pmfs_source_renumbered_files")
        @Nullable Long renumberedFiles) {

  /** A source whose requests are not counted. */
  public SourceReport(@Nullable String sourceAbsence) {
    this(Operations.NONE, sourceAbsence, null);
  }

  public record Operations(
      @Figure(
              value = BY_KIND,
              metric = REQUESTS,
              label = {"kind", "open"})
          long opens,
      @Figure(
              value = BY_KIND,
              metric = REQUESTS,
              label = {"kind", "read"})
          long reads,
      @Figure(
              value = "bytes of contents read from the source, for readers and for copies",
              metric = "pmfs_source_read_bytes_total")
          long bytes,
      @Figure(
              value = BY_KIND,
              metric = REQUESTS,
              label = {"kind", "stat"})
          long stats,
      @Figure(
              value = BY_KIND,
              metric = REQUESTS,
              label = {"kind", "list"})
          long lists,
      @Figure(
              value = BY_KIND,
              metric = REQUESTS,
              label = {"kind", "readlink"})
          long readlinks,
      @Figure(
              value = BY_KIND,
              metric = REQUESTS,
              label = {"kind", "xattr"})
          long xattrs,
      @Figure(
              value = BY_KIND,
              metric = REQUESTS,
              label = {"kind", "statfs"})
          long statfs,
      @Figure(
              value = BY_KIND,
              metric = REQUESTS,
              label = {"kind", "seek"})
          long seeks,
      @Figure("all requests together") long total) {
    static final String BY_KIND = "requests to the source by kind";
    static final String REQUESTS = "pmfs_source_operations_total";

    private static final Operations NONE = new Operations(0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

    public static Operations of(SourceOperations operations) {
      return new Operations(
          operations.opens(),
          operations.reads(),
          operations.bytes(),
          operations.stats(),
          operations.lists(),
          operations.readlinks(),
          operations.xattrs(),
          operations.statfs(),
          operations.seeks(),
          operations.total());
    }
  }
}
