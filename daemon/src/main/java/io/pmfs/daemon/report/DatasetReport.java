package io.pmfs.daemon.report;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.stage.ReadOrigins;
import io.pmfs.stage.StagerStatus;
import io.pmfs.stage.copies.Copies;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What readers of a dataset received, and from where. */
public record DatasetReport(
    List<TierReport> tiers,
    Reads reads,
    Staging staging,
    @Nullable Engagement engagement,
    @Nullable RecentReport recent,
    @Figure("null without `--node-cache`") @Nullable NodeCacheReport nodeCache) {
  /** For a mount without copies. */
  public static final DatasetReport NONE =
      new DatasetReport(List.of(), Reads.NONE, Staging.NONE, null, null, null);

  /** For a mount that only shows the source. */
  static DatasetReport of(Engagement engagement) {
    return new DatasetReport(List.of(), Reads.NONE, Staging.NONE, engagement, null, null);
  }

  /** Reads by applications that reached the daemon. */
  public record Reads(
      @Figure(value = "reads of applications that reached the daemon", metric = "pmfs_reads_total")
          long requests,
      @Figure(value = "bytes that readers got", metric = "pmfs_read_bytes_total") long bytes,
      @Figure("of `reads.bytes`, those from whole copies; a first epoch has none") long fromTiers,
      @Figure(
              value =
                  "of the bytes that readers got, those for which a reader waited for"
                      + " the source or, in a cluster, for a peer",
              metric = "pmfs_miss_bytes_total")
          long fromSource,
      @Figure("`fromTiers` divided by all bytes, 0 to 1; 0 before the first read") double hitRatio,
      @Figure(value = "reads answered with an error", metric = "pmfs_read_errors_total")
          long errors,
      @Figure(
              value =
                  "of the bytes that readers got, those just fetched from the source or a"
                      + " peer: from unfinished copies, and from copies that their first"
                      + " reader has not read to the end yet",
              metric = "pmfs_fetched_bytes_total")
          long fetched,
      @Figure(
              value =
                  "opens after which the kernel reads the copy's or the source's file by itself",
              metric = "pmfs_passthrough_opens_total")
          long opensLeftToKernel) {
    static final Reads NONE = new Reads(0, 0, 0, 0, 0, 0, 0, 0);

    public static Reads of(
        PmfsFileSystem.ReadStatistics reads, ReadOrigins origins, long opensLeftToKernel) {
      long fromTiers = origins.bytesFromTiers();
      long fromSource = origins.source().bytes();
      long fetched = origins.fetched().bytes();
      long served = fromTiers + fetched + fromSource;
      return new Reads(
          reads.requests(),
          served,
          fromTiers,
          fromSource,
          served == 0 ? 0 : (double) fromTiers / served,
          reads.errors(),
          fetched,
          opensLeftToKernel);
    }
  }

  /** Copying to the tiers in the background. */
  public record Staging(
      @Figure(value = "files being copied", metric = "pmfs_staging_active_files") long active,
      @Figure(
              value = "files that wait for a thread to copy them",
              metric = "pmfs_staging_queued_files")
          long queued,
      @Figure(
              value = "files not copied because the queue was full",
              metric = "pmfs_staging_dropped_total")
          long dropped,
      @Figure(value = "copies made", metric = "pmfs_staging_completed_total") long completed,
      @Figure("of these, copies of files that this daemon had copied before") long copiedAgain,
      @Figure(value = "copies given up", metric = "pmfs_staging_failed_total") long failed,
      @Figure(
              value = "copies whose checksums were compared and matched",
              metric = "pmfs_copies_verified_total")
          long verified,
      @Figure("copies dropped because they did not match their records") long mismatches,
      @Figure("copies removed to make room") long evicted,
      @Figure(
              value = "files for which no tier had room when they were asked for",
              metric = "pmfs_staging_no_room_total")
          long skippedNoRoom,
      @Figure("whether nothing is left to do") boolean idle) {
    static final Staging NONE = new Staging(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, true);

    public static Staging of(StagerStatus staging, Copies copies) {
      return new Staging(
          staging.active(),
          staging.queued(),
          staging.dropped(),
          staging.completed(),
          staging.copiedAgain(),
          staging.failed(),
          copies.verified(),
          copies.mismatches(),
          staging.evicted(),
          staging.skippedNoRoom(),
          staging.idle());
    }
  }
}
