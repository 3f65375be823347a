package io.pmfs.settings;

import io.pmfs.stage.Compression;
import java.nio.file.Path;
import java.time.Duration;
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
}
