package io.pmfs.daemon.report;

import io.pmfs.daemon.requests.AccessLogFile;
import io.pmfs.daemon.requests.Call;
import io.pmfs.daemon.requests.FailedRequests;
import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.daemon.requests.WaitingRequest;
import io.pmfs.fuse.protocol.RequestLatencies;
import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** The requests of the kernel: durations, waiting ones and failures. */
public record KernelReport(
    @Nullable RequestReport requests,
    @Figure("null without `--access-log`") @Nullable AccessLog accessLog,
    @Nullable Waiting waiting,
    @Figure("null for a writable mount") @Nullable Failures failures) {
  static final KernelReport NONE = new KernelReport(null, null, null, null);

  /**
   * The requests of one mount.
   *
   * @param failures null for a writable mount
   */
  public static KernelReport of(
      RequestLatencies latencies, RequestLog requests, @Nullable Failures failures) {
    return new KernelReport(
        RequestReport.of(latencies), AccessLog.of(requests), Waiting.of(requests), failures);
  }

  public record AccessLog(
      @Figure("the file with a line for each request") String file,
      @Figure("requests of this daemon that have no line there") long missing) {
    /** Null without an access log. */
    static @Nullable AccessLog of(RequestLog requests) {
      AccessLogFile file = requests.file();
      return file == null ? null : new AccessLog(file.file().toString(), requests.missing());
    }
  }

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

    static Waiting of(RequestLog requests) {
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
}
