package io.pmfs.settings;

import io.pmfs.machine.MountFailure;
import io.pmfs.places.TierSpec;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * How the changes of a writable mount reach the source.
 *
 * @param drainBytesPerSecond the most bytes copied per second; 0 for no limit
 * @param syncsAtSource whether fsync waits until the source has the file
 * @param sourcePatience how long cached names, attributes and content suffice while the source does
 *     not answer
 */
public record OutputSettings(
    long drainBytesPerSecond, boolean syncsAtSource, Duration sourcePatience) {
  /** Options without a meaning for a writable mount, with their only valid values. */
  private static final Map<MountOption<?>, List<String>> ALLOWED =
      new TreeMap<>(
          Map.of(
              MountOption.SOURCE_FORM, List.of("auto", "directory"),
              MountOption.NESTED, List.of("false"),
              MountOption.COMPRESSION, List.of("none"),
              MountOption.BRIDGE, List.of("auto", "kernel"),
              MountOption.READ_MODE, List.of("auto", "page-cache"),
              MountOption.EVICTION, List.of("none"),
              MountOption.REPLICAS, List.of("1"),
              MountOption.PASSTHROUGH_CAPABILITY, List.of("false")));

  /** Null for a read-only mount. */
  static @Nullable OutputSettings of(OptionValues values) throws MountFailure {
    if (!values.get(MountOption.WRITABLE)) {
      return null;
    }
    for (Map.Entry<MountOption<?>, List<String>> entry : ALLOWED.entrySet()) {
      String given = String.valueOf(values.get(entry.getKey()));
      if (!entry.getValue().contains(given)) {
        throw refusal(
            entry.getKey().commandLineName() + " " + given,
            "leave it out, or give " + entry.getValue().get(0));
      }
    }
    if (values.has(MountOption.NODE_CACHE)) {
      throw refusal(MountOption.NODE_CACHE.commandLineName(), "leave it out");
    }
    if (values.has(MountOption.CLUSTER) && values.has(MountOption.CLUSTER_DIR)) {
      throw refusal(
          MountOption.CLUSTER_DIR.commandLineName(),
          "give --nodes: the first of them writes to the source");
    }
    for (TierSpec tier : CopySettings.tiers(values)) {
      if (tier.compression() != null) {
        throw refusal("the compression of --tier " + tier, "leave the compression out");
      }
      if (tier.place().directory() == null) {
        throw refusal("--tier " + tier + ", a pool", "name a directory");
      }
    }
    return new OutputSettings(
        values.get(MountOption.DRAIN_RATE),
        values.get(MountOption.FSYNC).equals("source"),
        values.get(MountOption.SOURCE_PATIENCE));
  }

  private static MountFailure refusal(String what, String remedy) {
    return MountFailure.usage("--writable: not with " + what + "; " + remedy);
  }
}
