package io.pmfs.daemon.report;

import io.pmfs.daemon.metrics.ProcessMemory;
import io.pmfs.daemon.requests.AccessLogFile;
import io.pmfs.daemon.requests.Call;
import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.daemon.requests.WaitingRequest;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.stage.Copies;
import io.pmfs.stage.CopyFormat;
import io.pmfs.stage.ReadOrigins;
import io.pmfs.stage.Stager;
import io.pmfs.stage.StagerStatus;
import io.pmfs.tier.Tier;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * What {@code pmfs status --json} prints. Names are stable; fields are added, never changed.
 *
 * @param stateFailure why names and copies are not recorded for the next mount; null if they are
 * @param user whose process the daemon is
 * @param cluster with whom the dataset is shared; null if with nobody
 * @param metrics the URL that {@code --metrics} is answered at; null if at none
 * @param engagement whether the tiers do their work
 * @param requests how long those of the kernel took
 * @param memory what the daemon takes
 * @param accessLog null without {@code --access-log}
 * @param waiting requests that have no answer yet
 * @param sourceAbsence why a daemon that took over the mount cannot reach the source; null if it
 *     can
 * @param task the running task, or else the last one since it was mounted; null if there was none
 */
public record StatusReport(
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
    @Nullable String stateFailure,
    List<TierStatus> tiers,
    Reads reads,
    Staging staging,
    SourceOperations sourceOperations,
    @Nullable ClusterReport cluster,
    @Nullable TaskReport task,
    @Nullable String metrics,
    @Nullable Engagement engagement,
    @Nullable RequestReport requests,
    @Nullable Memory memory,
    @Nullable AccessLog accessLog,
    @Nullable Waiting waiting,
    @Nullable String sourceAbsence) {

  /** The same report with what only the daemon knows. */
  public StatusReport with(
      String daemonUser,
      long daemonPid,
      long daemonUptimeSeconds,
      String daemonLogFile,
      @Nullable String daemonMetrics) {
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
        stateFailure,
        tiers,
        reads,
        staging,
        sourceOperations,
        cluster,
        task,
        daemonMetrics,
        engagement,
        requests,
        memory,
        accessLog,
        waiting,
        sourceAbsence);
  }

  /** Where single requests are written, and how many could not be. */
  public record AccessLog(String file, long missing) {
    /** Null if there is none. */
    public static @Nullable AccessLog of(RequestLog requests) {
      AccessLogFile file = requests.file();
      return file == null ? null : new AccessLog(file.file().toString(), requests.missing());
    }
  }

  /**
   * Requests of the kernel that have waited for a second or longer and have no answer yet.
   *
   * @param longestSeconds how long the one has waited that has waited longest; 0 if there is none
   * @param operation of that one, as FUSE calls it; null if there is none
   * @param path what it is about, below the mount point and without a slash before it, as all paths
   *     of datasets; empty for the mount point itself, null if there is none
   * @param pid of the thread that asked; -1 if that is not known or there is none
   */
  public record Waiting(
      long count,
      double longestSeconds,
      @Nullable String operation,
      @Nullable String path,
      long pid) {
    private static final Duration LEAST = Duration.ofSeconds(1);
    private static final Waiting NONE = new Waiting(0, 0, null, null, -1);

    public static Waiting of(RequestLog requests) {
      List<WaitingRequest> waiting = requests.waiting(LEAST);
      if (waiting.isEmpty()) {
        return NONE;
      }
      WaitingRequest longest = waiting.get(0);
      Call call = longest.call();
      return new Waiting(
          waiting.size(),
          longest.nanos() / 1e9,
          call.operation(),
          call.path() == null ? null : call.target().substring(1),
          call.pid());
    }
  }

  /**
   * One tier.
   *
   * @param state {@code on}, {@code full} or {@code failed}
   * @param reason why it is not on, or empty
   * @param compression how new copies are stored, as {@code --compression} has it
   * @param contentBytes what the copies hold when they are read; -1 if that is not known
   * @param hits reads that its whole copies answered
   * @param misses reads that it could not answer, so that a later place did
   * @param readBytes what its whole copies answered
   * @param evictions copies removed to make room
   * @param errors failed reads and writes
   * @param mismatches copies dropped because they were not what was recorded
   */
  public record TierStatus(
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
      long contentBytes,
      long hits,
      long misses,
      long readBytes,
      long evictions,
      long errors,
      long mismatches) {
    public static TierStatus of(int index, ReadOrigins origins, Copies copies, Stager stager) {
      Tier tier = copies.tiers().get(index);
      CopyFormat format = copies.formats().get(index);
      io.pmfs.tier.TierStatus status = tier.status();
      io.pmfs.tier.TierStatus.Dax dax = status.dax();
      String reason = status.reason();
      return new TierStatus(
          status.name(),
          status.kind(),
          status.path(),
          status.state().name().toLowerCase(Locale.ROOT),
          reason == null ? "" : reason,
          dax == null ? Dax.NONE : new Dax(dax.real(), dax.reason()),
          status.capacityBytes(),
          status.usedBytes(),
          status.copies(),
          format.compression().toString(),
          format.contentBytes(),
          origins.tiers().get(index).reads(),
          origins.misses(index),
          origins.tiers().get(index).bytes(),
          stager.evicted(tier),
          tier.errors(),
          copies.mismatches(tier));
    }
  }

  /** Whether the tier's disk gives direct access to persistent memory, and how that is known. */
  public record Dax(boolean real, String reason) {
    /** Of a tier that is not meant to be persistent memory. */
    public static final Dax NONE = new Dax(false, "not a pm tier");
  }

  /**
   * Reads by applications that reached the daemon.
   *
   * @param bytes all bytes that readers got
   * @param fromTiers of these, from whole copies
   * @param fromSource of these, what a reader waited for the source for, or for a peer
   * @param fetched of these, from copies in the making, which were read from there a moment before
   * @param opensLeftToKernel opens after which the kernel reads the copy by itself (passthrough)
   * @param hitRatio bytes from tiers by all bytes, 0 to 1; 0 before the first read
   */
  public record Reads(
      long requests,
      long bytes,
      long fromTiers,
      long fromSource,
      double hitRatio,
      long errors,
      long fetched,
      long opensLeftToKernel) {
    public static Reads of(
        PmfsFileSystem.ReadStatistics reads, ReadOrigins origins, long opensLeftToKernel) {
      long fromTiers = origins.bytesFromTiers();
      long fromSource = origins.source().bytes();
      long fetched = origins.fetched().bytes();
      long served = fromTiers + fetched + fromSource;
      return new Reads(
          reads.requests(),
          reads.bytes(),
          fromTiers,
          fromSource,
          served == 0 ? 0 : (double) fromTiers / served,
          reads.errors(),
          fetched,
          opensLeftToKernel);
    }
  }

  /** What the daemon takes: all of it as the kernel counts it, and of that Java's heap. */
  public record Memory(long residentBytes, long heapUsedBytes, long heapMaxBytes) {
    public static Memory now() {
      Runtime runtime = Runtime.getRuntime();
      return new Memory(
          ProcessMemory.residentBytes(),
          runtime.totalMemory() - runtime.freeMemory(),
          runtime.maxMemory());
    }
  }

  /** Copying to the tiers in the background. */
  public record Staging(
      long active,
      long queued,
      long dropped,
      long completed,
      long copiedAgain,
      long failed,
      long verified,
      long mismatches,
      long evicted,
      long skippedNoRoom,
      boolean idle) {
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

  /** What the backing store was asked for. */
  public record SourceOperations(
      long opens,
      long reads,
      long bytes,
      long stats,
      long lists,
      long readlinks,
      long xattrs,
      long statfs,
      long seeks,
      long total) {
    public static SourceOperations of(io.pmfs.tier.SourceOperations operations) {
      return new SourceOperations(
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
