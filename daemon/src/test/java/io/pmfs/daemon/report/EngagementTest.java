package io.pmfs.daemon.report;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

final class EngagementTest {
  private static final DatasetReport SAMPLE = SampleReport.of("/mnt", "/source").dataset();
  private static final DatasetReport.Staging IDLE = staging(0, 0, 0);

  private static TierReport tier(String state) {
    return SampleReport.with(
        SAMPLE.tiers().get(1),
        Map.of("path", "/local", "state", state, "reason", state.equals("on") ? "" : "I/O error"));
  }

  private static DatasetReport.Reads reads(long requests) {
    return SampleReport.with(DatasetReport.Reads.NONE, Map.of("requests", requests));
  }

  private static DatasetReport.Staging staging(long active, long noRoom, long failed) {
    return SampleReport.with(
        DatasetReport.Staging.NONE,
        Map.of("active", active, "skippedNoRoom", noRoom, "failed", failed, "idle", active == 0));
  }

  private static Engagement engagement(
      List<TierReport> tiers, DatasetReport.Staging staging, RecentReads.Counts recent) {
    Engagement engagement = Engagement.of(tiers, reads(recent.bytes()), staging, recent);
    assertThat(engagement.reason()).isNotBlank().doesNotContain("%,d", "%.1f", "%s");
    assertThat(engagement.isSourceOnly()).isEqualTo(engagement.state().equals("source-only"));
    return engagement;
  }

  private static String state(
      String tier, DatasetReport.Staging staging, RecentReads.Counts recent) {
    return engagement(List.of(tier(tier)), staging, recent).state();
  }

  private static RecentReads.Counts counts(
      long bytes, long sourceBytes, long copied, long copiedAgain, long evicted) {
    return new RecentReads.Counts(
        bytes, sourceBytes, copied, copiedAgain, evicted, RecentReads.Origins.NONE);
  }

  /** Counts with copies of new files only, none evicted. */
  private static RecentReads.Counts recent(long bytes, long sourceBytes, long copied) {
    return counts(bytes, sourceBytes, copied, 0, 0);
  }

  @Test
  void of_mountThatHasJustBegun_isUnreadAndNoFailure() {
    for (String state : List.of("on", "recovering", "full")) {
      assertThat(state(state, IDLE, RecentReads.Counts.NONE)).isEqualTo("unread");
    }
  }

  @Test
  void of_readsThatHaveNoAnswerYet_isUnreadButNotReadElsewhere() {
    Engagement engagement =
        Engagement.of(List.of(tier("on")), reads(3), IDLE, RecentReads.Counts.NONE);

    assertThat(engagement.state()).isEqualTo("unread");
    assertThat(engagement.reason()).doesNotContain("elsewhere");
  }

  @Test
  void of_firstEpoch_fills() {
    assertThat(state("on", staging(1, 0, 0), recent(18, 18, 0))).isEqualTo("filling");
    assertThat(state("on", IDLE, recent(18, 18, 9))).isEqualTo("filling");
    assertThat(state("on", staging(0, 4, 0), recent(18, 18, 5)))
        .as("the second epoch will read the copies that found room")
        .isEqualTo("filling");
    assertThat(state("recovering", IDLE, recent(18, 18, 0))).isEqualTo("filling");
  }

  @Test
  void of_firstEpochThroughATierThatEvicts_fillsUntilFilesComeAgain() {
    assertThat(state("on", IDLE, counts(18, 18, 9, 0, 4))).isEqualTo("filling");
  }

  @Test
  void of_datasetThatFits_isEngagedFromTheSecondEpochOn() {
    assertThat(state("on", IDLE, recent(36, 18, 9))).isEqualTo("engaged");
    assertThat(state("on", IDLE, recent(18, 0, 0))).isEqualTo("engaged");
  }

  @Test
  void of_datasetOfWhichHalfFits_isEngaged() {
    assertThat(state("full", staging(0, 9, 0), recent(36, 27, 9))).isEqualTo("engaged");
    assertThat(state("full", staging(0, 9, 0), recent(18, 9, 0))).isEqualTo("engaged");
  }

  /** A measured case: 18 MB, read three times through a tier of 7 MB. */
  @Test
  void of_copiesEvictedBeforeTheyAreReadAgain_isSourceOnly() {
    assertThat(state("on", IDLE, counts(54_000, 57_400, 27, 18, 24))).isEqualTo("source-only");
    assertThat(state("on", IDLE, counts(100, 91, 27, 18, 24))).isEqualTo("source-only");
    assertThat(state("on", IDLE, counts(100, 90, 27, 18, 24)))
        .as("a tenth of the bytes did not come from the source")
        .isEqualTo("engaged");
  }

  @Test
  void of_allTiersFailed_isSourceOnlyWhateverWasBefore() {
    assertThat(state("failed", IDLE, recent(99, 1, 0))).isEqualTo("source-only");
    assertThat(state("failed", IDLE, RecentReads.Counts.NONE)).isEqualTo("source-only");
    assertThat(engagement(List.of(tier("failed")), IDLE, recent(1, 1, 0)).reason())
        .contains("/local: I/O error");
    assertThat(engagement(List.of(tier("failed"), tier("on")), IDLE, recent(9, 1, 0)).state())
        .isEqualTo("engaged");
  }

  @Test
  void of_tierWithoutRoomThatHasNothingOfThis_isSourceOnly() {
    assertThat(state("on", staging(0, 9, 0), recent(9, 9, 0))).isEqualTo("source-only");
    assertThat(state("full", staging(0, 9, 0), recent(9, 9, 0))).isEqualTo("source-only");
  }

  private static String verdict(
      String tier, DatasetReport.Staging staging, RecentReads.Counts recent) {
    return engagement(List.of(tier(tier)), staging, recent).verdict(true, false);
  }

  @Test
  void verdict_ofAMountThatSparesTheSource_isWorkingAndSaysHowMuchTheSourceGave() {
    assertThat(verdict("on", IDLE, recent(100, 2, 0)))
        .isEqualTo("working: the source was asked for 2 % of what was read");
    assertThat(verdict("on", IDLE, recent(1000, 1, 0)))
        .isEqualTo("working: the source was asked for less than 1 % of what was read");
    assertThat(verdict("on", IDLE, recent(1000, 0, 0)))
        .isEqualTo("working: no recent read needed the source");
  }

  @Test
  void verdict_ofOtherMounts_isInPlainWords() {
    assertThat(verdict("on", IDLE, RecentReads.Counts.NONE))
        .startsWith("not read yet: nothing was read")
        .contains("the kernel's memory, which is not counted");
    assertThat(verdict("on", IDLE, recent(18, 18, 9)))
        .startsWith(
            "filling: the first read of a file comes from the source and makes a copy, from");
    assertThat(verdict("on", IDLE, counts(54_000, 57_400, 27, 18, 24)))
        .startsWith("not helping: copies are evicted before they are read again; ");
    assertThat(verdict("failed", IDLE, recent(99, 1, 0)))
        .isEqualTo(
            "not helping: no tier works any more (/local: I/O error); repair it and mount again");
    assertThat(verdict("full", staging(0, 9, 0), recent(9, 9, 0)))
        .isEqualTo(
            "not helping: the tiers have no room (9 files found none); give them more, or use"
                + " --eviction lru; /local: I/O error");
  }

  @Test
  void of_copiesThatCannotBeMade_isSourceOnly() {
    assertThat(state("on", staging(0, 0, 3), recent(9, 9, 0))).isEqualTo("source-only");
    assertThat(state("on", IDLE, recent(9, 9, 0))).isEqualTo("source-only");
  }
}
