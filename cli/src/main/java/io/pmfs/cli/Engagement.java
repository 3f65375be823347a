package io.pmfs.cli;

import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * Whether a mount does for its readers what it is for. In {@code pmfs status --json} the state is
 * one of the four words below.
 *
 * @param reason a sentence for people
 */
record Engagement(String state, String reason) {
  /** Nothing was read through the mount since its daemon started. */
  static final String UNREAD = "unread";

  /** Something was read that the source need not be asked for. */
  static final String ENGAGED = "engaged";

  /** All was read from the source, and is kept: what a first epoch looks like. */
  static final String FILLING = "filling";

  /** All is read from the source, and so will be what comes. */
  static final String SOURCE_ONLY = "source-only";

  boolean isSourceOnly() {
    return state.equals(SOURCE_ONLY);
  }

  /** Of one daemon's counts since it started. */
  static Engagement of(
      List<StatusReport.TierStatus> tiers,
      StatusReport.Reads reads,
      StatusReport.Staging staging,
      @Nullable ClusterReport cluster) {
    if (!tiers.isEmpty() && tiers.stream().allMatch(tier -> tier.state().equals("failed"))) {
      return new Engagement(
          SOURCE_ONLY,
          "no tier works any more (%s: %s); mend it and mount again"
              .formatted(tiers.get(0).path(), tiers.get(0).reason()));
    }
    boolean isHit = tiers.stream().anyMatch(tier -> tier.hits() > 0);
    boolean isFromPeers = cluster != null && cluster.bytesFromPeers() > 0;
    if (isHit) {
      return new Engagement(
          ENGAGED,
          String.format(
              Locale.ROOT,
              "%.1f %% of what was read came from the tiers%s",
              reads.hitRatio() * 100,
              reads.opensLeftToKernel() > 0 ? ", and the kernel reads copies by itself" : ""));
    }
    if (reads.opensLeftToKernel() > 0) {
      return new Engagement(
          ENGAGED,
          String.format(
              Locale.ROOT,
              "the kernel reads copies by itself; %,d opens so far",
              reads.opensLeftToKernel()));
    }
    if (reads.bytes() == 0) {
      return new Engagement(
          UNREAD,
          reads.requests() > 0
              ? "no read was answered with data yet"
              : "nothing was read through the mount yet; a job that is running reads its data"
                  + " elsewhere");
    }
    return isFromPeers
        ? new Engagement(ENGAGED, "what this node has no copy of comes from its peers")
        : fromSource(tiers, staging);
  }

  private static Engagement fromSource(
      List<StatusReport.TierStatus> tiers, StatusReport.Staging staging) {
    if (staging.evicted() > 0) {
      return new Engagement(
          SOURCE_ONLY,
          "copies are evicted before they are read again; give the tiers more room, or keep what is"
              + " there with --eviction none");
    }
    boolean isRecovering = tiers.stream().anyMatch(tier -> tier.state().equals("recovering"));
    if (staging.completed() + staging.active() + staging.queued() > 0 || isRecovering) {
      return new Engagement(
          FILLING,
          String.format(
                  Locale.ROOT,
                  "all came from the source so far, and is kept: %,d copies made",
                  staging.completed())
              + (staging.skippedNoRoom() > 0
                  ? String.format(Locale.ROOT, "; %,d files found no room", staging.skippedNoRoom())
                  : ""));
    }
    return new Engagement(SOURCE_ONLY, whyNothingIsKept(staging));
  }

  private static String whyNothingIsKept(StatusReport.Staging staging) {
    if (staging.skippedNoRoom() > 0) {
      return String.format(
          Locale.ROOT,
          "the tiers have no room (%,d files found none); give them more, or use --eviction lru",
          staging.skippedNoRoom());
    }
    if (staging.failed() > 0) {
      return String.format(
          Locale.ROOT, "%,d copies could not be made; the log says why", staging.failed());
    }
    return "no copies are made";
  }
}
