package io.pmfs.settings;

import java.nio.file.Path;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * What the daemon tells of its work, and where.
 *
 * @param metrics where metrics and a page are answered; null for nowhere
 * @param logFile where the daemon logs; null for the default place
 * @param logLevel error, warn, info, debug or trace
 * @param accessLog takes a line for each request; null for none
 * @param slowRequests what takes at least so long is warned of; zero for nothing
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
        values.findPlace(MountOption.LOG_FILE),
        values.get(MountOption.LOG_LEVEL),
        values.findPlace(MountOption.ACCESS_LOG),
        values.get(MountOption.SLOW_REQUESTS));
  }
}
