package io.pmfs.daemon.report;

import io.pmfs.daemon.requests.AccessLogFile;
import io.pmfs.daemon.requests.Call;
import io.pmfs.daemon.requests.FailedRequests;
import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.daemon.requests.WaitingRequest;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.mounts.StandIn;
import io.pmfs.posix.Troubles;
import io.pmfs.stage.ReadOrigins;
import io.pmfs.stage.StagerStatus;
import io.pmfs.stage.copies.Copies;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The output of {@code pmfs status --json}. Names are stable; fields are added, never changed. The
 * last parts are null in the report of an older daemon.
 */
public record StatusReport(
    @Figure("where it is mounted, or one of those places") String mountpoint,
    @Figure("the dataset") String source,
    @Figure("the user whose process the daemon is") String user,
    @Figure("the daemon's process; 0 if there is none") long pid,
    @Figure("how long the daemon has run and counted") long uptimeSeconds,
    @Figure(
            "`kernel` or `jnr`; `none` after a crash loop, when the source itself is mounted there"
                + " and the report has no other figures")
        String bridge,
    @Figure("why this bridge") String bridgeReason,
    @Figure("`auto` until it is chosen, `page-cache` or `passthrough`") String readMode,
    @Figure("why this mode") String readModeReason,
    @Figure("where the daemon logs") @Nullable String logFile,
    @Figure("where names and the list of copies are") @Nullable String stateDirectory,
    @Figure(
            "why names and the list of copies are not recorded for the next"
                + " mount; `pmfs status` then ends with 4. Null if they are recorded")
        @Nullable String stateFailure,
    List<TierReport> tiers,
    Reads reads,
    Staging staging,
    SourceOperations sourceOperations,
    @Figure("null without `--cluster`") @Nullable ClusterReport cluster,
    @Figure("the running task, or the last one; null if there was none") @Nullable TaskReport task,
    @Figure("the URL of `--metrics`, with the port that was chosen") @Nullable String metrics,
    @Nullable Engagement engagement,
    @Nullable RequestReport requests,
    @Nullable Memory memory,
    @Figure("null without `--access-log`") @Nullable AccessLog accessLog,
    @Nullable Waiting waiting,
    @Figure(
            "why a daemon that took over the mount cannot reach the source; it"
                + " keeps trying, and serves what records and tiers have")
        @Nullable String sourceAbsence,
    @Figure(
            "a thread of the daemon that has failed in the last half minute and goes on trying, and"
                + " why; `pmfs status` then ends with 4. Null if there is none")
        @Nullable String threadFailure,
    @Nullable RecentReport recent,
    @Figure(
            "null while the mount is at its mount point; an object once it was unmounted lazily, or"
                + " another mount covers it, and files in it are still open")
        @Nullable Detached detached,
    @Figure("null without `--writable`") @Nullable OutputsReport outputs,
    @Figure(
            "the mount points and who mounted them, as `pmfs status` finds them in the mount table;"
                + " null in the daemon's own answer")
        @Nullable List<Holder> holders,
    @Figure(
            "with `--keep`, how long the daemon still stays without a mount point; null while it has"
                + " one")
        @Nullable Long keptSeconds,
    @Figure("null without `--cache`") @Nullable NodeCacheReport nodeCache,
    @Figure("null for a writable mount") @Nullable Failures failures,
    @Figure(
            value =
                "how many files the source gave other inode numbers than before, at least, while"
                    + " size and times stayed the same: 0 if its numbers are stable, as far as is"
                    + " known; null for a writable mount",
            metric = "pmfs_source_renumbered_files")
        @Nullable Long renumberedFiles) {

  private static final String NO_BRIDGE = "none";

  @Figure(
      value = "1 while names and copies are recorded for the next mount, 0 while that fails",
      metric = "pmfs_state_recording")
  public boolean isRecording() {
    return stateFailure == null;
  }

  /** Whether the mount works, in words; null if the daemon does not report it. */
  public @Nullable String verdict() {
    return engagement == null
        ? null
        : engagement.verdict(
            cluster == null || cluster.absent().isEmpty(),
            failures != null && failures.lately() > 0);
  }

  /** The same report with the values that only the daemon knows. */
  public StatusReport with(
      String daemonUser,
      long daemonPid,
      long daemonUptimeSeconds,
      String daemonLogFile,
      @Nullable String daemonMetrics,
      @Nullable Duration kept) {
    return with(
        mountpoint,
        daemonUser,
        daemonPid,
        daemonUptimeSeconds,
        daemonLogFile,
        daemonMetrics,
        detached,
        holders,
        kept == null ? null : (Long) kept.toSeconds());
  }

  /** The same report with what a command has seen of a detached mount. */
  public StatusReport with(Detached seen) {
    return with(mountpoint, user, pid, uptimeSeconds, logFile, metrics, seen, holders, keptSeconds);
  }

  /**
   * The same report with the mount points that a command has seen; they are not detached. The
   * daemon knows only its first one, which may have been unmounted.
   */
  public StatusReport with(List<Holder> seen) {
    boolean isThere =
        seen.isEmpty() || seen.stream().anyMatch(place -> place.mountpoint().equals(mountpoint));
    return with(
        isThere ? mountpoint : seen.get(0).mountpoint(),
        user,
        pid,
        uptimeSeconds,
        logFile,
        metrics,
        seen.isEmpty() ? detached : null,
        seen,
        keptSeconds);
  }

  private StatusReport with(
      String place,
      String daemonUser,
      long daemonPid,
      long daemonUptimeSeconds,
      @Nullable String daemonLogFile,
      @Nullable String daemonMetrics,
      @Nullable Detached seen,
      @Nullable List<Holder> seenHolders,
      @Nullable Long seconds) {
    return new StatusReport(
        place,
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
        sourceAbsence,
        threadFailure,
        recent,
        seen,
        outputs,
        seenHolders,
        seconds,
        nodeCache,
        failures,
        renumberedFiles);
  }

  /** One of the places where the dataset is mounted. */
  public record Holder(
      @Figure("the mount point") String mountpoint,
      @Figure("the user who mounted it; null if that is not recorded") @Nullable String user,
      @Figure("the process that asked for it; null if that is not recorded") @Nullable Long pid,
      @Figure("the job of Slurm, PBS or Flux for which it was mounted; null outside of a job")
          @Nullable String job,
      @Figure("when it was mounted, as in ISO 8601; null if that is not recorded")
          @Nullable String since) {}

  /** What is still open in a mount that is no longer at its mount point. */
  public record Detached(
      @Figure(
              "how many of its files are open, as far as the user of `pmfs status` may see; null if"
                  + " that is not known, as in the daemon's own answer")
          @Nullable Integer openFiles,
      @Figure(
              "the processes that have them open, with one file each, and those of other mount"
                  + " namespaces that have the mount")
          List<String> openBy) {
    /** What a daemon knows: the kernel does not tell it of files that are opened and closed. */
    public static final Detached UNCOUNTED = new Detached(null, List.of());
  }

  /** The access log, and the number of requests missing in it. */
  public record AccessLog(
      @Figure("the file with a line for each request") String file,
      @Figure("requests of this daemon that have no line there") long missing) {
    /** Null without an access log. */
    public static @Nullable AccessLog of(RequestLog requests) {
      AccessLogFile file = requests.file();
      return file == null ? null : new AccessLog(file.file().toString(), requests.missing());
    }
  }

  /** Requests of the kernel that have waited for a second or longer and have no answer yet. */
  public record Waiting(
      @Figure(
              value =
                  "requests of the kernel that have waited for a second or longer and"
                      + " have no answer yet. No other count includes them until they are"
                      + " answered. Always 0 where `bridge` is `jnr`, because libfuse does"
                      + " not report them",
              metric = "pmfs_waiting_requests")
          long count,
      @Figure(
              value = "how long the oldest of the waiting requests has waited; 0 if there is none",
              metric = "pmfs_waiting_longest_seconds")
          double longestSeconds,
      @Figure(
              "the operation of that request, as FUSE calls it, in lower case;"
                  + " null if there is none")
          @Nullable String operation,
      @Figure(
              "its path below the mount point (the mount point itself is the empty"
                  + " path), with `%XX` for bytes that are not printable; null if the"
                  + " inode has no path, or if there is no such request")
          @Nullable String path,
      @Figure(
              "the thread that asked; for the first thread of a process that is"
                  + " the process id. 0 is the kernel itself, -1 if there is no such"
                  + " request")
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

  /** Requests of readers that failed. */
  public record Failures(
      @Figure(
              value =
                  "requests that failed in the last ten minutes and did not give a program its"
                      + " data or names: with EIO, ESTALE, ETIMEDOUT and the like, not ENOENT;"
                      + " `pmfs status` then ends with 4. Always 0 where `bridge` is `jnr`",
              metric = "pmfs_failed_requests_lately")
          long lately,
      @Figure(
              value = "such requests since the daemon started",
              metric = "pmfs_failed_requests_total")
          long total,
      @Figure(
              "the operation of the last of them, as FUSE calls it, in lower case; null if there is"
                  + " none")
          @Nullable String operation,
      @Figure("its path below the mount point, as in `waiting.path`; null if it is not known")
          @Nullable String path,
      @Figure("its error, as in errno(3); null if there is none") @Nullable String errno,
      @Figure("when it failed, as in ISO 8601; null if there is none") @Nullable String time) {
    public static Failures of(RequestLog requests) {
      FailedRequests.Counts counts = requests.failed();
      FailedRequests.Last last = counts.last();
      if (last == null) {
        return new Failures(counts.lately(), counts.total(), null, null, null, null);
      }
      Call call = last.call();
      return new Failures(
          counts.lately(),
          counts.total(),
          call.operation(),
          call.path() == null ? null : call.target().substring(1),
          last.errno(),
          last.time().truncatedTo(ChronoUnit.SECONDS).toString());
    }
  }

  /** The report of a writable mount, whose tiers keep outputs instead of copies. */
  public static StatusReport ofOutputs(Outputs mount, OutputsReport outputs) {
    return new StatusReport(
        mount.mountpoint(),
        mount.source(),
        "",
        ProcessHandle.current().pid(),
        0,
        "kernel",
        mount.bridgeReason(),
        "page-cache",
        "files may change",
        null,
        mount.stateDirectory(),
        mount.stateFailure(),
        List.of(),
        Reads.NONE,
        Staging.NONE,
        SourceOperations.NONE,
        mount.cluster(),
        null,
        null,
        null,
        mount.requests(),
        Memory.now(),
        mount.accessLog(),
        mount.waiting(),
        mount.sourceAbsence(),
        Troubles.recent(),
        null,
        mount.isAtMountpoint() ? null : Detached.UNCOUNTED,
        outputs,
        null,
        null,
        null,
        null,
        null);
  }

  /** The report about a mount that has no daemon any more, but shows the source. */
  public static StatusReport of(StandIn standIn) {
    return new StatusReport(
        standIn.mountpoint(),
        standIn.source(),
        "root",
        0,
        0,
        NO_BRIDGE,
        "the source itself is mounted there since " + standIn.since(),
        "page-cache",
        "the source's own",
        standIn.logFile(),
        null,
        null,
        List.of(),
        Reads.NONE,
        Staging.NONE,
        SourceOperations.NONE,
        null,
        null,
        null,
        new Engagement(Engagement.SOURCE_ONLY, standIn.text()),
        null,
        null,
        null,
        null,
        null,
        null,
        null,
        null,
        null,
        null,
        null,
        null,
        null,
        null);
  }

  /** Whether a daemon reports; else the source itself is mounted there. */
  public boolean hasDaemon() {
    return !bridge.equals(NO_BRIDGE);
  }

  /** What a writable mount knows about itself; the parts are those of the report. */
  public record Outputs(
      String mountpoint,
      String source,
      String bridgeReason,
      String stateDirectory,
      @Nullable String stateFailure,
      RequestReport requests,
      @Nullable AccessLog accessLog,
      Waiting waiting,
      @Nullable String sourceAbsence,
      @Nullable ClusterReport cluster,
      boolean isAtMountpoint) {}

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
              value = "opens after which the kernel reads the copy's file by itself",
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
          reads.bytes(),
          fromTiers,
          fromSource,
          served == 0 ? 0 : (double) fromTiers / served,
          reads.errors(),
          fetched,
          opensLeftToKernel);
    }
  }

  /** The daemon's memory: all of it as the kernel counts it, and Java's heap. */
  public record Memory(
      @Figure(
              value = "memory of the daemon, as the kernel counts it",
              metric = "pmfs_resident_memory_bytes")
          long residentBytes,
      @Figure("of that, Java's heap") long heapUsedBytes,
      @Figure("the most that the heap may take") long heapMaxBytes) {
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

  /** The requests to the backing store. */
  public record SourceOperations(
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

    static final SourceOperations NONE = new SourceOperations(0, 0, 0, 0, 0, 0, 0, 0, 0, 0);

    public static SourceOperations of(io.pmfs.source.SourceOperations operations) {
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
