package io.pmfs.cli;

import io.pmfs.metadata.Namespace;
import io.pmfs.stage.CopyFormat;
import io.pmfs.tier.Tier;
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
   * What the opening before this one kept; null if it did not stop cleanly or did not use the tier.
   */
  static Tier.@Nullable Usage kept(Namespace namespace, String tier) {
    Long opening = namespace.counter("tier-session/" + tier);
    Long bytes = namespace.counter("tier-bytes/" + tier);
    Long copies = namespace.counter("tier-copies/" + tier);
    Long count = namespace.counter("tier-bundles/" + tier);
    if (!namespace.stoppedCleanly()
        || opening == null
        || bytes == null
        || copies == null
        || count == null
        || opening != namespace.opening() - 1) {
      return null;
    }
    Map<Long, Long> bundles = new HashMap<>();
    for (long i = 0; i < count; i++) {
      Long bundle = namespace.counter(key("tier-bundle", i, tier));
      Long wanted = namespace.counter(key("tier-wanted", i, tier));
      if (bundle == null || wanted == null) {
        return null;
      }
      bundles.put(bundle, wanted);
    }
    return new Tier.Usage(bytes, copies, bundles);
  }

  private static String key(String what, long index, String tier) {
    return what + "/" + index + "/" + tier;
  }

  /** What the copies held, of which {@link #kept} says what they take; null if not known. */
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
    long count = 0;
    for (Map.Entry<Long, Long> bundle : usage.bundles().entrySet()) {
      namespace.putCounter(key("tier-bundle", count, name), bundle.getKey());
      namespace.putCounter(key("tier-wanted", count, name), bundle.getValue());
      count++;
    }
    namespace.putCounter("tier-bundles/" + name, count);
    namespace.putCounter("tier-bytes/" + name, usage.fileBytes());
    namespace.putCounter("tier-content/" + name, format.contentBytes());
    namespace.putCounter("tier-copies/" + name, usage.copies());
    namespace.putCounter("tier-session/" + name, namespace.opening());
  }
}
