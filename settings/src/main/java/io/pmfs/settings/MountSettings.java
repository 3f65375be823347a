package io.pmfs.settings;

import io.pmfs.machine.MountFailure;
import io.pmfs.posix.DescriptorPath;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * The resolved configuration of one mount, with a record for each part of the program.
 *
 * @param mountpoint where to mount, absolute and without symbolic links; or a {@link
 *     DescriptorPath}
 * @param outputs how changes reach the source; null for a read-only mount
 * @param cluster the cluster that shares the dataset; null if there is none
 */
public record MountSettings(
    Path mountpoint,
    SourceSettings source,
    CopySettings copies,
    @Nullable OutputSettings outputs,
    MetadataSettings metadata,
    BridgeSettings bridge,
    @Nullable ClusterOptions cluster,
    ObservationSettings observation) {
  static MountSettings of(Path mountpoint, OptionValues values) throws MountFailure {
    if (!values.has(MountOption.SOURCE)) {
      throw MountFailure.usage(
          "%s: no source; give SOURCE before it, or set it in [mount.\"%s\"] in the configuration"
              .formatted(mountpoint, mountpoint));
    }
    return new MountSettings(
        mountpoint,
        SourceSettings.of(values),
        CopySettings.of(values),
        OutputSettings.of(values),
        MetadataSettings.of(values),
        BridgeSettings.of(values),
        ClusterOptions.of(values),
        ObservationSettings.of(values));
  }

  /** Whether another program has mounted, and the mount point is its descriptor. */
  public boolean isMountedByAnother() {
    return DescriptorPath.isOne(mountpoint);
  }
}
