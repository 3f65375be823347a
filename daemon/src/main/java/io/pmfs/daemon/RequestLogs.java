package io.pmfs.daemon;

import io.pmfs.daemon.requests.AccessLogFile;
import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.daemon.requests.SlowRequests;
import io.pmfs.fuse.Bridge;
import io.pmfs.metadata.Namespace;
import io.pmfs.settings.ExitStatus;
import io.pmfs.settings.MountFailure;
import io.pmfs.settings.ObservationSettings;
import io.pmfs.settings.Reason;
import java.io.IOException;
import java.nio.file.Path;
import java.time.InstantSource;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What a mount keeps of its requests, by its settings. */
final class RequestLogs {
  private static final Logger log = LoggerFactory.getLogger(RequestLogs.class);

  private RequestLogs() {}

  /**
   * Opens the access log, if one is wanted, and begins to watch for slow requests.
   *
   * @param bridge whose requests they are
   * @param isInUse whether a mount depends on it already, which is not to end because of this: then
   *     a file that cannot be written is one line in the log
   */
  static RequestLog open(
      ObservationSettings settings, Namespace namespace, Bridge bridge, boolean isInUse)
      throws MountFailure {
    InstantSource clock = InstantSource.system();
    SlowRequests slow =
        new SlowRequests(settings.slowRequests(), clock, line -> log.warn("{}", line));
    return new RequestLog(
            namespace::path,
            bridge::waiting,
            file(settings.accessLog(), isInUse, clock),
            slow,
            clock)
        .start();
  }

  private static @Nullable AccessLogFile file(
      @Nullable Path path, boolean isInUse, InstantSource clock) throws MountFailure {
    if (path == null) {
      return null;
    }
    AccessLogFile file =
        new AccessLogFile(path, AccessLogFile.MAX_BYTES, AccessLogFile.OLDER_FILES, clock);
    try {
      file.open();
    } catch (IOException e) {
      String line = path + ": access log: " + Reason.of(e);
      if (!isInUse) {
        throw new MountFailure(
            ExitStatus.USAGE, line + "; choose another file with --access-log", e);
      }
      log.warn("{}; going on without", line);
    }
    return file;
  }
}
