package io.pmfs.cli;

import io.pmfs.metadata.Namespace;
import io.pmfs.stage.CopyFormat;
import io.pmfs.tier.DirectoryTier;
import io.pmfs.tier.TierStatus;
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
    if (!namespace.stoppedCleanly()
        || session == null
        || bytes == null
        || copies == null
        || session != namespace.session() - 1) {
      return null;
    }
    return new DirectoryTier.Usage(bytes, copies);
  }

  /** What the copies held, of which {@link #kept} says what they take; null if not known. */
  static @Nullable Long keptContent(Namespace namespace, String tier) {
    Long bytes = namespace.counter("tier-content/" + tier);
    return kept(namespace, tier) == null || bytes == null || bytes < 0 ? null : bytes;
  }

  static void keep(Namespace namespace, DirectoryTier tier, CopyFormat format) {
    TierStatus status = tier.status();
    if (status.state() == TierStatus.State.ON || status.state() == TierStatus.State.FULL) {
      namespace.putCounter("tier-bytes/" + tier.name(), status.usedBytes());
      namespace.putCounter("tier-content/" + tier.name(), format.contentBytes());
      namespace.putCounter("tier-copies/" + tier.name(), status.copies());
      namespace.putCounter("tier-session/" + tier.name(), namespace.session());
    }
  }
}
