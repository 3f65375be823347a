package io.pmfs.daemon.dataset;

import io.pmfs.daemon.process.DaemonLog;
import io.pmfs.machine.MountFailure;
import io.pmfs.mounts.Registry;
import io.pmfs.places.Surroundings;
import io.pmfs.places.TierSpec;
import io.pmfs.settings.ClusterOptions;
import io.pmfs.settings.MountSettings;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * Checks the places of pmfs's own files. Below the mount point the daemon would wait for itself;
 * inside the source, copies and access log would become part of the dataset.
 */
public final class MountPlaces {
  private final MountSettings settings;
  private final Surroundings surroundings;

  public MountPlaces(MountSettings settings, Surroundings surroundings) {
    this.settings = settings;
    this.surroundings = surroundings;
  }

  /** Throws for the first unusable place; creates nothing. */
  public void check() throws MountFailure {
    checkOutsideMount(
        surroundings.resolveLinks(Registry.directory(surroundings)),
        "runtime directory",
        "set PMFS_RUNTIME_DIR to another");
    for (TierSpec tier : settings.copies().tiers()) {
      checkApart(tier.path(), tier.what(), "choose another --tier");
    }
    checkApart(settings.metadata().stateDirectory(), "state", "choose another --state-dir");
    checkOutsideMount(logFile(), "log file", "choose another --log-file");
    checkApart(settings.observation().accessLog(), "access log", "choose another --access-log");
    ClusterOptions cluster = settings.cluster();
    if (cluster != null) {
      checkCluster(cluster);
    }
  }

  /** A daemon that takes over reads these again. */
  private void checkCluster(ClusterOptions cluster) throws MountFailure {
    checkOutsideMount(
        cluster.directory(), "directory of the cluster", "choose another --cluster-dir");
    for (Path file : cluster.tls()) {
      checkOutsideMount(
          surroundings.resolveLinks(file), "file of --cluster-tls", "choose another --cluster-tls");
    }
  }

  private Path logFile() {
    Path configured = settings.observation().logFile();
    return configured != null
        ? configured
        : surroundings.resolveLinks(
            DaemonLog.defaultFile(
                settings.mountpoint(), Registry.directory(surroundings), surroundings));
  }

  private void checkApart(@Nullable Path path, String what, String remedy) throws MountFailure {
    Path source = settings.source().path();
    if (path != null && path.startsWith(source)) {
      throw MountFailure.usage(path, what, "lies inside the source " + source, remedy);
    }
    checkOutsideMount(path, what, remedy);
  }

  private void checkOutsideMount(@Nullable Path path, String what, String remedy)
      throws MountFailure {
    if (path != null && path.startsWith(settings.mountpoint())) {
      throw MountFailure.usage(
          path, what, "lies inside the mount point " + settings.mountpoint(), remedy);
    }
  }
}
