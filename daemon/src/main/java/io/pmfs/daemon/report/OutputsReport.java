package io.pmfs.daemon.report;

import io.pmfs.machine.Reason;
import io.pmfs.posix.FsException;
import io.pmfs.writable.DrainStatus;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** How far the source is behind a writable mount. */
public record OutputsReport(
    @Figure(
            value = "bytes of files that are not at the source yet",
            metric = "pmfs_outputs_dirty_bytes")
        long dirtyBytes,
    @Figure(
            value = "files with bytes that are not at the source yet",
            metric = "pmfs_outputs_dirty_files")
        long dirtyFiles,
    @Figure(
            value = "changes to files and names that the source does not have yet",
            metric = "pmfs_outputs_waiting_changes")
        long waitingChanges,
    @Figure(
            value = "how long the oldest of these changes has waited; 0 if there is none",
            metric = "pmfs_outputs_oldest_seconds")
        long oldestAgeSeconds,
    @Figure(
            value = "bytes copied to the source since the daemon started",
            metric = "pmfs_outputs_drained_bytes_total")
        long drainedBytes,
    @Figure(
            value = "changes applied at the source since the daemon started",
            metric = "pmfs_outputs_drained_changes_total")
        long drainedChanges,
    @Figure(
            value = "bytes per second copied to the source in the last ten seconds",
            metric = "pmfs_outputs_drain_bytes_per_second")
        long bytesPerSecond,
    @Figure(
            value = "bytes of the tiers that the mount's files use, including drained ones",
            metric = "pmfs_outputs_local_bytes")
        long localBytes,
    @Figure(
            value =
                "files and directories that another program changed at the source, too; its changes"
                    + " were kept",
            metric = "pmfs_outputs_conflicts")
        long conflicts,
    @Figure(
            value =
                "changes that the source refuses at present, or that were given up; `pmfs status`"
                    + " then ends with 4",
            metric = "pmfs_outputs_refused")
        long refused,
    List<Failure> failures,
    @Figure("an unreachable node that changes wait for; null if there is none")
        @Nullable Away away) {

  /** A node that does not answer. */
  public record Away(
      @Figure("its name") String node,
      @Figure(
              "whether it owns all names; all other figures except `localBytes` are then from its"
                  + " last answer")
          boolean owner,
      @Figure("since when it does not answer, as in ISO 8601") String since,
      @Figure("the first path that waits for it, below the mount point; null if that is not known")
          @Nullable String path,
      @Figure("changes that wait for it, including those queued behind that path") long changes) {
    private static Away of(DrainStatus.Away away) {
      return new Away(
          away.node(),
          away.isOwner(),
          away.since().toString(),
          away.path().isEmpty() ? null : away.path(),
          away.changes());
    }

    public String who() {
      return owner
          ? "%s, which owns all names, has been unreachable since %s"
              .formatted(node, MissingNode.time(since))
          : "%s, which has the data written there, has been unreachable since %s"
              .formatted(node, MissingNode.time(since));
    }

    public String remedy() {
      return owner
          ? "changes fail until it is back: check the network, or mount there again with the same"
              + " --state-dir and --tier"
          : "mount there again with the same --state-dir and --tier, or remove or rewrite %s"
              .formatted(path == null ? "the file" : path);
    }
  }

  @Figure(
      value = "1 while changes wait for a node that does not answer, else 0",
      metric = "pmfs_outputs_node_away")
  public boolean isNodeAway() {
    return away != null;
  }

  /** Whether the figures are current because the owner answers. */
  public boolean isCurrent() {
    return away == null || !away.owner;
  }

  /** A file in conflict or with a change that the source refuses. */
  public record Failure(
      @Figure("its path below the mount point") String path,
      @Figure("what is wrong with it") String reason) {}

  public static OutputsReport of(DrainStatus status) {
    return new OutputsReport(
        status.dirtyBytes(),
        status.dirtyFiles(),
        status.waitingChanges(),
        status.oldestAgeSeconds(),
        status.drainedBytes(),
        status.drainedChanges(),
        status.bytesPerSecond(),
        status.localBytes(),
        status.conflicts(),
        status.refused(),
        status.failures().stream()
            .map(failure -> new Failure(failure.path(), reason(failure)))
            .toList(),
        status.away() == null ? null : Away.of(status.away()));
  }

  private static String reason(DrainStatus.Failure failure) {
    FsException cause = failure.cause();
    String reason = cause == null ? failure.reason() : "the source answers: " + Reason.of(cause);
    String waiting =
        failure.behind() == 0
            ? ""
            : "; %,d %s for it"
                .formatted(
                    failure.behind(), failure.behind() == 1 ? "change waits" : "changes wait");
    return reason
        + waiting
        + (failure.isAside() ? "; set aside: pmfs drain --retry, --export or --drop" : "");
  }

  /** Whether no changes wait for the source. */
  public boolean isDrained() {
    return isCurrent() && waitingChanges == 0 && dirtyFiles == 0;
  }

  /** Whether the source has everything as programs wrote it. */
  public boolean isWhole() {
    return isDrained() && refused == 0 && conflicts == 0 && away == null;
  }
}
