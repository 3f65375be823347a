package io.pmfs.cli;

import io.pmfs.metadata.Namespace;
import io.pmfs.stage.CopyFormat;
import io.pmfs.tier.DirectoryTier;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What each tier's copies take, kept from a clean stop to the next start so that no tier need be
 * walked.
 */
final class TierUsage {
  private TierUsage() {}

  /**
   * What the session before this one kept; null if it did not stop cleanly or did not use the tier.
   */
  static DirectoryTier.@Nullable Usage kept(Namespace namespace, String tier) {
    Long session = namespace.counter("tier-session/" + tier);
    Long bytes = namespace.counter("tier-bytes/" + tier);
    Long copies = namespace.counter("tier-copies/" + tier);
    Long last = namespace.counter("tier-last-bundle/" + tier);
    if (!namespace.stoppedCleanly()
        || session == null
        || bytes == null
        || copies == null
        || last == null
        || session != namespace.session() - 1) {
      return null;
    }
    Map<Long, Long> bundles = new HashMap<>();
    for (long bundle = 1; bundle <= last; bundle++) {
      Long wanted = namespace.counter(bundleKey(tier, bundle));
      if (wanted != null && wanted > 0) {
        bundles.put(bundle, wanted);
      }
    }
    return new DirectoryTier.Usage(bytes, copies, bundles);
  }

  private static String bundleKey(String tier, long bundle) {
    return "tier-bundle/" + bundle + "/" + tier;
  }

  /** What the copies held, of which {@link #kept} says what they take; null if not known. */
  static @Nullable Long keptContent(Namespace namespace, String tier) {
    Long bytes = namespace.counter("tier-content/" + tier);
    return kept(namespace, tier) == null || bytes == null || bytes < 0 ? null : bytes;
  }

  static void keep(Namespace namespace, DirectoryTier tier, CopyFormat format) {
    DirectoryTier.Usage usage = tier.usage();
    if (usage == null) {
      return;
    }
    String name = tier.name();
    Map<Long, Long> bundles = usage.bundles();
    long last = bundles.keySet().stream().mapToLong(Long::longValue).max().orElse(0);
    for (long bundle = 1; bundle <= last; bundle++) {
      namespace.putCounter(bundleKey(name, bundle), bundles.getOrDefault(bundle, 0L));
    }
    namespace.putCounter("tier-last-bundle/" + name, last);
    namespace.putCounter("tier-bytes/" + name, usage.fileBytes());
    namespace.putCounter("tier-content/" + name, format.contentBytes());
    namespace.putCounter("tier-copies/" + name, usage.copies());
    namespace.putCounter("tier-session/" + name, namespace.session());
  }
}
