package io.pmfs.daemon.dataset;

import io.pmfs.daemon.requests.AccessLogFile;
import io.pmfs.daemon.requests.RequestLog;
import io.pmfs.daemon.requests.SlowRequests;
import io.pmfs.fuse.Bridge;
import io.pmfs.machine.ExitStatus;
import io.pmfs.machine.MountFailure;
import io.pmfs.machine.Reason;
import io.pmfs.metadata.FileName;
import io.pmfs.places.OwnPath;
import io.pmfs.settings.ObservationSettings;
import java.io.IOException;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Opens the request log of a mount. */
final class RequestLogs {
  private static final Logger log = LoggerFactory.getLogger(RequestLogs.class);

  private RequestLogs() {}

  /**
   * Opens the access log, if there is one, and starts watching for slow requests.
   *
   * @param paths returns the path of an inode below the root; null if it is not known
   * @param bridge the source of the requests
   * @param isInUse whether the mount is already in use, so that a failure to write is only logged
   */
  static RequestLog open(
      ObservationSettings settings,
      LongFunction<@Nullable FileName> paths,
      Bridge bridge,
      boolean isInUse)
      throws MountFailure {
    InstantSource clock = InstantSource.system();
    SlowRequests slow =
        new SlowRequests(settings.slowRequests(), clock, line -> log.warn("{}", line));
    return new RequestLog(
            paths, bridge::waiting, file(settings.accessLog(), isInUse, clock), slow, clock)
        .start();
  }

  private static @Nullable AccessLogFile file(
      @Nullable Path path, boolean isInUse, InstantSource clock) throws MountFailure {
    if (path == null) {
      return null;
    }
    AccessLogFile file =
        new AccessLogFile(
            path,
            OwnPath.ofProcess()::replaceableFile,
            AccessLogFile.MAX_BYTES,
            AccessLogFile.OLDER_FILES,
            clock);
    try {
      file.open();
    } catch (IOException e) {
      String line = path + ": access log: " + Reason.of(e);
      if (!isInUse) {
        throw new MountFailure(
            ExitStatus.USAGE, line + "; choose another file with --access-log", e);
      }
      log.warn("{}; trying again later", line);
    }
    return file;
  }
}
