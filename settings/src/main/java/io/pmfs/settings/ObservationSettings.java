package io.pmfs.settings;

import io.pmfs.machine.MountFailure;
import java.nio.file.Path;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * What the daemon logs and reports, and where.
 *
 * @param metrics the address that serves metrics and a page; null for none
 * @param logFile where the daemon logs; null for the default place
 * @param logLevel error, warn, info, debug or trace
 * @param accessLog the file that receives a line for each request; null for none
 * @param slowRequests the duration from which a request causes a warning; zero for no warnings
 */
public record ObservationSettings(
    @Nullable MetricsAddress metrics,
    @Nullable Path logFile,
    String logLevel,
    @Nullable Path accessLog,
    Duration slowRequests) {
  static ObservationSettings of(OptionValues values) throws MountFailure {
    return new ObservationSettings(
        values.find(MountOption.METRICS),
        values.findOwnPlace(MountOption.LOG_FILE),
        values.get(MountOption.LOG_LEVEL),
        values.findOwnPlace(MountOption.ACCESS_LOG),
        values.get(MountOption.SLOW_REQUESTS));
  }
}
