package io.pmfs.daemon.report;

import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/**
 * Whether a mount helps its readers: whether the source recently delivered clearly less than
 * readers received. In {@code pmfs status --json} the state is one of the four words below.
 */
public record Engagement(
    @Figure("`engaged`, `filling`, `unread` or `source-only`; see above") String state,
    @Figure("a sentence for people") String reason) {
  /** Nothing was read through the mount since its daemon started. */
  static final String UNREAD = "unread";

  /** The source delivered at most nine tenths of what readers received. */
  public static final String ENGAGED = "engaged";

  /** The source delivered more, but the data is being copied, as in a first epoch. */
  static final String FILLING = "filling";

  /** The source delivered more, and will continue to. */
  public static final String SOURCE_ONLY = "source-only";

  public boolean isSourceOnly() {
    return state.equals(SOURCE_ONLY);
  }

  /**
   * The state and its reason in words for users.
   *
   * @param hasAllNodes false if nodes of the cluster are missing
   * @param fails whether readers' requests fail
   */
  String verdict(boolean hasAllNodes, boolean fails) {
    String word =
        switch (state) {
          case UNREAD -> fails ? "failing" : "not read yet";
          case ENGAGED ->
              fails ? "working with errors" : hasAllNodes ? "working" : "working without all nodes";
          case SOURCE_ONLY -> "not helping";
          default -> state;
        };
    return word + ": " + (fails && state.equals(UNREAD) ? "no read got data" : reason);
  }

  /**
   * The engagement of one daemon.
   *
   * @param recent the counts of the recent past
   */
  public static Engagement of(
      List<TierReport> tiers,
      DatasetReport.Reads reads,
      DatasetReport.Staging staging,
      RecentReads.Counts recent) {
    if (!tiers.isEmpty() && tiers.stream().allMatch(tier -> tier.state().equals("failed"))) {
      return new Engagement(
          SOURCE_ONLY,
          "no tier works any more (%s: %s); repair it and mount again"
              .formatted(tiers.get(0).path(), tiers.get(0).reason()));
    }
    if (recent.bytes() == 0) {
      return new Engagement(
          UNREAD,
          reads.requests() > 0
              ? "no read was answered with data yet"
              : "nothing was read through the mount since its daemon started; a job that is running"
                  + " reads its data elsewhere, or from the kernel's memory, which is not counted");
    }
    if (recent.isSourceSpared()) {
      return new Engagement(
          ENGAGED,
          recent.sourceBytes() == 0
              ? "no recent read needed the source"
              : "the source was asked for %s of what was read"
                  .formatted(percent(recent.sourceBytes(), recent.bytes())));
    }
    return fromSource(tiers, staging, recent);
  }

  private static String percent(long part, long whole) {
    long rounded = Math.round(100.0 * part / whole);
    return rounded == 0 ? "less than 1 %" : rounded + " %";
  }

  private static Engagement fromSource(
      List<TierReport> tiers, DatasetReport.Staging staging, RecentReads.Counts recent) {
    if (recent.evicted() > 0 && 2 * recent.copiedAgain() >= recent.copied()) {
      return new Engagement(
          SOURCE_ONLY,
          "copies are evicted before they are read again; give the tiers more room, or keep the"
              + " present copies with --eviction none");
    }
    boolean isRecovering = tiers.stream().anyMatch(tier -> tier.state().equals("recovering"));
    if (recent.copied() + staging.active() + staging.queued() > 0 || isRecovering) {
      return new Engagement(
          FILLING,
          String.format(
                  Locale.ROOT,
                  "the first read of a file comes from the source and makes a copy, from which later"
                      + " reads come; %,d files copied so far",
                  staging.completed())
              + (staging.skippedNoRoom() > 0
                  ? String.format(Locale.ROOT, "; %,d files found no room", staging.skippedNoRoom())
                  : ""));
    }
    return new Engagement(SOURCE_ONLY, whyNothingIsKept(tiers, staging));
  }

  private static String whyNothingIsKept(List<TierReport> tiers, DatasetReport.Staging staging) {
    if (staging.skippedNoRoom() > 0) {
      return String.format(
              Locale.ROOT,
              "the tiers have no room (%,d files found none); give them more, or use --eviction"
                  + " lru",
              staging.skippedNoRoom())
          + tiers.stream()
              .filter(TierReport::isFull)
              .map(tier -> "; " + tier.path() + ": " + tier.reason())
              .collect(Collectors.joining());
    }
    if (staging.failed() > 0) {
      return String.format(
          Locale.ROOT, "%,d copies could not be made; the log says why", staging.failed());
    }
    return "no copies are made";
  }
}
