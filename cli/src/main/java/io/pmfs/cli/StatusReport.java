package io.pmfs.cli;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What {@code pmfs status --json} prints. Names are stable; fields are added, never changed.
 *
 * @param user whose process the daemon is
 * @param cluster with whom the dataset is shared; null if with nobody
 * @param task the running task, or else the last one since it was mounted; null if there was none
 */
record StatusReport(
    String mountpoint,
    String source,
    String user,
    long pid,
    long uptimeSeconds,
    String bridge,
    String bridgeReason,
    String readMode,
    String readModeReason,
    @Nullable String logFile,
    @Nullable String stateDirectory,
    List<TierStatus> tiers,
    Reads reads,
    Staging staging,
    SourceOperations sourceOperations,
    @Nullable ClusterReport cluster,
    @Nullable TaskReport task) {

  /** The same report with what only the daemon knows. */
  StatusReport with(
      String daemonUser, long daemonPid, long daemonUptimeSeconds, String daemonLogFile) {
    return new StatusReport(
        mountpoint,
        source,
        daemonUser,
        daemonPid,
        daemonUptimeSeconds,
        bridge,
        bridgeReason,
        readMode,
        readModeReason,
        daemonLogFile,
        stateDirectory,
        tiers,
        reads,
        staging,
        sourceOperations,
        cluster,
        task);
  }

  /**
   * One tier.
   *
   * @param state {@code on}, {@code full} or {@code failed}
   * @param reason why it is not on, or empty
   * @param compression how new copies are stored, as {@code --compression} has it
   * @param contentBytes what the copies hold when they are read; -1 if that is not known
   */
  record TierStatus(
      String name,
      String kind,
      String path,
      String state,
      String reason,
      Dax dax,
      long capacityBytes,
      long usedBytes,
      long copies,
      String compression,
      long contentBytes) {}

  /** Whether the tier's disk gives direct access to persistent memory, and how that is known. */
  record Dax(boolean real, String reason) {}

  /**
   * Reads by applications that reached the daemon.
   *
   * @param bytes all bytes served, from tiers and from the source
   * @param hitRatio bytes from tiers by bytes served, 0 to 1; 0 before the first read
   */
  record Reads(
      long requests, long bytes, long fromTiers, long fromSource, double hitRatio, long errors) {}

  /** Copying to the tiers in the background. */
  record Staging(
      long active,
      long queued,
      long dropped,
      long completed,
      long failed,
      long verified,
      long mismatches,
      long evicted,
      long skippedNoRoom,
      boolean idle) {}

  /** What the backing store was asked for. */
  record SourceOperations(
      long opens,
      long reads,
      long bytes,
      long stats,
      long lists,
      long readlinks,
      long xattrs,
      long statfs,
      long seeks,
      long total) {}
}
