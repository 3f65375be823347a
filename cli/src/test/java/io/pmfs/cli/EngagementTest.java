package io.pmfs.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;

final class EngagementTest {
  private static StatusReport.TierStatus tier(String state, long hits) {
    return new StatusReport.TierStatus(
        "t",
        "ssd",
        "/local",
        state,
        state.equals("on") ? "" : "I/O error",
        new StatusReport.Dax(false, ""),
        100,
        50,
        5,
        "none",
        50,
        hits,
        1,
        hits,
        0,
        0,
        0);
  }

  private static StatusReport.Reads reads(long fromTiers, long fromSource, long left) {
    long all = fromTiers + fromSource;
    return new StatusReport.Reads(
        all, all, fromTiers, fromSource, all == 0 ? 0 : fromTiers / (double) all, 0, 0, left);
  }

  private static StatusReport.Staging staging(
      long completed, long active, long noRoom, long failed, long evicted) {
    return new StatusReport.Staging(
        active, 0, 0, completed, failed, 0, 0, evicted, noRoom, active == 0);
  }

  private static final StatusReport.Staging IDLE = staging(0, 0, 0, 0, 0);

  private static String state(
      List<StatusReport.TierStatus> tiers,
      StatusReport.Reads reads,
      StatusReport.Staging staging,
      @Nullable ClusterReport cluster) {
    Engagement engagement = Engagement.of(tiers, reads, staging, cluster);
    assertThat(engagement.reason()).isNotBlank().doesNotContain("%,d", "%.1f");
    assertThat(engagement.isSourceOnly()).isEqualTo(engagement.state().equals("source-only"));
    return engagement.state();
  }

  private static String alone(
      String tier, long hits, StatusReport.Reads reads, StatusReport.Staging staging) {
    return state(List.of(tier(tier, hits)), reads, staging, null);
  }

  @Test
  void of_mountThatHasJustBegun_isUnreadAndNoFailure() {
    assertThat(alone("on", 0, reads(0, 0, 0), IDLE)).isEqualTo("unread");
    assertThat(alone("recovering", 0, reads(0, 0, 0), IDLE)).isEqualTo("unread");
    assertThat(alone("full", 0, reads(0, 0, 0), IDLE)).isEqualTo("unread");
  }

  @Test
  void of_readsThatHaveNoAnswerYet_isUnreadButNotReadElsewhere() {
    StatusReport.Reads asked = new StatusReport.Reads(3, 0, 0, 0, 0, 0, 0, 0);

    Engagement engagement = Engagement.of(List.of(tier("on", 0)), asked, IDLE, null);

    assertThat(engagement.state()).isEqualTo("unread");
    assertThat(engagement.reason()).doesNotContain("elsewhere");
  }

  @Test
  void of_firstEpoch_fills() {
    assertThat(alone("on", 0, reads(0, 9, 0), staging(0, 1, 0, 0, 0))).isEqualTo("filling");
    assertThat(alone("on", 0, reads(0, 9, 0), staging(9, 0, 0, 0, 0))).isEqualTo("filling");
    assertThat(alone("on", 0, reads(0, 9, 0), staging(5, 0, 4, 0, 0)))
        .as("what found room will be read from there in the second epoch")
        .isEqualTo("filling");
    assertThat(alone("recovering", 0, reads(0, 9, 0), IDLE)).isEqualTo("filling");
  }

  @Test
  void of_secondEpoch_isEngaged() {
    assertThat(alone("on", 1, reads(1, 99, 0), staging(9, 0, 0, 0, 0))).isEqualTo("engaged");
    assertThat(alone("full", 1, reads(1, 99, 0), staging(0, 0, 9, 0, 9))).isEqualTo("engaged");
  }

  @Test
  void of_copiesReadByTheKernel_isEngaged() {
    assertThat(alone("on", 0, reads(0, 0, 5), IDLE)).isEqualTo("engaged");
    assertThat(alone("on", 0, reads(0, 9, 5), IDLE)).isEqualTo("engaged");
  }

  @Test
  void of_allTiersFailed_isSourceOnlyWhateverWasBefore() {
    assertThat(alone("failed", 99, reads(99, 1, 0), IDLE)).isEqualTo("source-only");
    assertThat(alone("failed", 0, reads(0, 0, 0), IDLE)).isEqualTo("source-only");
    assertThat(state(List.of(tier("failed", 9), tier("on", 1)), reads(9, 1, 0), IDLE, null))
        .isEqualTo("engaged");
    assertThat(Engagement.of(List.of(tier("failed", 1)), reads(1, 1, 0), IDLE, null).reason())
        .contains("/local: I/O error");
  }

  @Test
  void of_tierWithoutRoomThatHasNothingOfThis_isSourceOnly() {
    assertThat(alone("on", 0, reads(0, 9, 0), staging(0, 0, 9, 0, 0))).isEqualTo("source-only");
    assertThat(alone("full", 0, reads(0, 9, 0), staging(0, 0, 9, 0, 0))).isEqualTo("source-only");
  }

  @Test
  void of_copiesEvictedBeforeTheyAreRead_isSourceOnly() {
    assertThat(alone("on", 0, reads(0, 9, 0), staging(9, 1, 0, 0, 8))).isEqualTo("source-only");
  }

  @Test
  void of_copiesThatCannotBeMade_isSourceOnly() {
    assertThat(alone("on", 0, reads(0, 9, 0), staging(0, 0, 0, 3, 0))).isEqualTo("source-only");
    assertThat(alone("on", 0, reads(0, 9, 0), IDLE)).isEqualTo("source-only");
  }

  @Test
  void of_nodeThatReadsFromPeers_isEngaged() {
    ClusterReport cluster = FakeDataset.inCluster("n1").cluster();

    assertThat(state(List.of(tier("on", 0)), reads(0, 9, 0), IDLE, cluster)).isEqualTo("engaged");
  }
}
