package io.pmfs.settings;

import io.pmfs.stage.Compression;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The resolved configuration of one mount.
 *
 * @param source the dataset's directory or tar file, absolute and without symbolic links
 * @param sourceForm {@code auto}, {@code directory} or {@code tar}
 * @param nested whether tar files in tar files are directories
 * @param mountpoint where to mount it, absolute and without symbolic links
 * @param tiers fastest first; at least one
 * @param keepFree what is always left free on each tier's disk
 * @param requireDax whether a pm tier must be persistent memory that can be mapped itself
 * @param compression how copies are stored in tiers that do not say so themselves
 * @param stateDirectory below which every dataset has its own state; with the last local tier when
 *     not configured; null only when no tier is on a local disk
 * @param bridge {@code auto}, {@code kernel} or {@code jnr}
 * @param readMode {@code auto}, {@code page-cache} or {@code passthrough}
 * @param eviction {@code none} or {@code lru}
 * @param fetchThreads 1 to 256
 * @param metadataThreads 1 to 256
 * @param bufferMemoryBytes at least 8 MiB
 * @param metadataMemoryBytes at least 16 MiB
 * @param cluster with whom the dataset is shared; null if with nobody
 * @param allowOther whether users other than the mounting one get in
 * @param user whose process serves a mount that root made; null for the process's own user
 * @param passthroughCapability whether that process was to keep CAP_SYS_ADMIN
 * @param metrics where metrics and a page are answered; null for nowhere
 * @param readyTimeout how long the probe through the mount may take
 * @param logFile where the daemon logs; null for the default place
 * @param logLevel error, warn, info, debug or trace
 * @param accessLog takes a line for each request; null for none
 * @param slowRequests what takes at least so long is warned of; zero for nothing
 */
public record MountSettings(
    Path source,
    String sourceForm,
    boolean nested,
    Path mountpoint,
    List<TierSpec> tiers,
    Capacity keepFree,
    boolean requireDax,
    Compression compression,
    @Nullable Path stateDirectory,
    String bridge,
    String readMode,
    String eviction,
    int fetchThreads,
    int metadataThreads,
    long bufferMemoryBytes,
    long metadataMemoryBytes,
    @Nullable ClusterOptions cluster,
    boolean allowOther,
    @Nullable String user,
    boolean passthroughCapability,
    @Nullable MetricsAddress metrics,
    Duration readyTimeout,
    @Nullable Path logFile,
    String logLevel,
    @Nullable Path accessLog,
    Duration slowRequests) {
  public MountSettings {
    tiers = List.copyOf(tiers);
  }

  static MountSettings of(Path mountpoint, OptionValues values) throws MountFailure {
    if (!values.has(MountOption.SOURCE)) {
      throw MountFailure.usage(
          "%s: no source: neither given before it nor in a section [mount.\"%s\"] of the configuration"
              .formatted(mountpoint, mountpoint));
    }
    return new MountSettings(
        values.placeOf(values.get(MountOption.SOURCE)),
        values.get(MountOption.SOURCE_FORM),
        values.get(MountOption.NESTED),
        mountpoint,
        tiers(values),
        values.get(MountOption.KEEP_FREE),
        values.get(MountOption.REQUIRE_DAX),
        values.get(MountOption.COMPRESSION),
        values.findPlace(MountOption.STATE_DIR),
        values.get(MountOption.BRIDGE),
        values.get(MountOption.READ_MODE),
        values.get(MountOption.EVICTION),
        values.get(MountOption.FETCH_THREADS),
        values.get(MountOption.METADATA_THREADS),
        values.get(MountOption.BUFFER_MEMORY),
        values.get(MountOption.METADATA_MEMORY),
        ClusterOptions.of(values),
        values.get(MountOption.ALLOW_OTHER),
        values.find(MountOption.USER),
        values.get(MountOption.PASSTHROUGH_CAPABILITY),
        values.find(MountOption.METRICS),
        values.get(MountOption.READY_TIMEOUT),
        values.findPlace(MountOption.LOG_FILE),
        values.get(MountOption.LOG_LEVEL),
        values.findPlace(MountOption.ACCESS_LOG),
        values.get(MountOption.SLOW_REQUESTS));
  }

  /** The tiers at their places; a place is one tier's only. */
  static List<TierSpec> tiers(OptionValues values) throws MountFailure {
    List<String> texts = values.texts(MountOption.TIER);
    List<TierSpec> given = values.get(MountOption.TIER);
    List<TierSpec> tiers = new ArrayList<>();
    for (int i = 0; i < given.size(); i++) {
      Path path = values.placeOf(given.get(i).path());
      if (tiers.stream().anyMatch(other -> other.path().equals(path))) {
        throw MountFailure.usage("--tier " + texts.get(i) + ": this directory is a tier already");
      }
      tiers.add(given.get(i).at(path));
    }
    return tiers;
  }
}
