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
    @Figure(value = "files with such bytes", metric = "pmfs_outputs_dirty_files") long dirtyFiles,
    @Figure(
            value = "changes that the source does not have yet, of files and of names",
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
            value = "changes made at the source since the daemon started",
            metric = "pmfs_outputs_drained_changes_total")
        long drainedChanges,
    @Figure(
            value = "bytes a second that were copied to the source in the last ten seconds",
            metric = "pmfs_outputs_drain_bytes_per_second")
        long bytesPerSecond,
    @Figure(
            value = "how much of the tiers the files of the mount take, drained ones included",
            metric = "pmfs_outputs_local_bytes")
        long localBytes,
    @Figure(
            value =
                "files that another program changed at the source; pmfs kept the mount's version beside them",
            metric = "pmfs_outputs_conflicts")
        long conflicts,
    @Figure(
            value =
                "changes that the source refuses at the moment, or that were given up; `pmfs"
                    + " status` then ends with 4",
            metric = "pmfs_outputs_refused")
        long refused,
    List<Failure> failures,
    @Figure("the node that changes wait for, because it does not answer; null if there is none")
        @Nullable Away away) {

  /** A node that does not answer. */
  public record Away(
      @Figure("its name") String node,
      @Figure(
              "whether it owns all names. Then all other figures, but for `localBytes`, are those"
                  + " of the time when it answered last")
          boolean owner,
      @Figure("since when it does not answer, as in ISO 8601") String since,
      @Figure("the first path that waits for it, below the mount point; null if that is not known")
          @Nullable String path,
      @Figure("changes that wait for it, also those behind that path") long changes) {
    private static Away of(DrainStatus.Away away) {
      return new Away(
          away.node(),
          away.isOwner(),
          away.since().toString(),
          away.path().isEmpty() ? null : away.path(),
          away.changes());
    }

    /** Who is away, in words. */
    public String who() {
      return owner
          ? "%s, which owns all names, is away since %s".formatted(node, MissingNode.time(since))
          : "%s, which keeps what was written there, is away since %s"
              .formatted(node, MissingNode.time(since));
    }

    /** What to do about it. */
    public String remedy() {
      return owner
          ? "changes fail until it is back: check the network, or mount there again with the same"
              + " --state-dir and --tier"
          : "mount there again with the same --state-dir and --tier, or remove %s or write it anew"
              .formatted(path == null ? "the file" : path);
    }
  }

  @Figure(
      value = "1 while changes wait for a node that does not answer, else 0",
      metric = "pmfs_outputs_node_away")
  public boolean isNodeAway() {
    return away != null;
  }

  /** Whether the figures are those of now: the owner answers. */
  public boolean isCurrent() {
    return away == null || !away.owner;
  }

  /** A file that is in conflict, or whose change the source refuses; the first hundred of them. */
  public record Failure(
      @Figure("its path below the mount point") String path,
      @Figure("what is wrong with it") String reason) {}

  /** The report of a status. */
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

  /** Whether nothing waits for the source any more. */
  public boolean isDrained() {
    return isCurrent() && waitingChanges == 0 && dirtyFiles == 0;
  }

  /** Whether the source has all of it as programs wrote it. */
  public boolean isWhole() {
    return isDrained() && refused == 0 && conflicts == 0 && away == null;
  }
}
