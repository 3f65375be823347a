package io.pmfs.daemon.dataset;

import io.pmfs.metadata.Namespace;
import io.pmfs.stage.formats.CopyFormat;
import io.pmfs.tier.Tier;
import org.jspecify.annotations.Nullable;

/**
 * The space that each tier's copies use, recorded at a clean stop, so that the next mount can add
 * copies before it has compared the tier with the records.
 */
final class TierUsage {
  private TierUsage() {}

  /** The recorded usage; null if pmfs did not stop cleanly or did not use the tier last time. */
  static Tier.@Nullable Usage kept(Namespace namespace, String tier) {
    Long opening = namespace.counter("tier-session/" + tier);
    Long bytes = namespace.counter("tier-bytes/" + tier);
    Long copies = namespace.counter("tier-copies/" + tier);
    return !namespace.stoppedCleanly()
            || opening == null
            || bytes == null
            || copies == null
            || opening != namespace.opening() - 1
        ? null
        : new Tier.Usage(bytes, copies);
  }

  /** The uncompressed size of the same copies; null if unknown. */
  static @Nullable Long keptContent(Namespace namespace, String tier) {
    Long bytes = namespace.counter("tier-content/" + tier);
    return kept(namespace, tier) == null || bytes == null || bytes < 0 ? null : bytes;
  }

  static void keep(Namespace namespace, Tier tier, CopyFormat format) {
    Tier.Usage usage = tier.usage();
    if (usage == null) {
      return;
    }
    String name = tier.name();
    namespace.putCounter("tier-bytes/" + name, usage.fileBytes());
    namespace.putCounter("tier-content/" + name, format.contentBytes());
    namespace.putCounter("tier-copies/" + name, usage.copies());
    namespace.putCounter("tier-session/" + name, namespace.opening());
  }
}
