package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cluster.peers.HeldBlocks;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

final class HandoutTest {
  private static final UUID A = new UUID(1, 1);
  private static final UUID B = new UUID(1, 2);

  private final AtomicLong nanos = new AtomicLong(5);
  private final Handout handout = new Handout(100, nanos::get);

  private static HeldBlocks.Wanted missed(Integer... blocks) {
    return new HeldBlocks.Wanted(List.of(blocks), List.of());
  }

  private List<Integer> grant(UUID asker, HeldBlocks.Wanted wanted) {
    List<Integer> granted = handout.grant(asker, wanted);
    granted.forEach(handout::sent);
    return granted;
  }

  @Test
  void grant_ofTheSameBlockToTwo_givesItToTheFirst() {
    assertThat(grant(A, missed(3))).contains(3);
    assertThat(grant(B, missed(3))).isNotEmpty().doesNotContain(3);
  }

  @Test
  void grant_untilNothingIsLeft_givesEachBlockOnce() {
    List<Integer> all = new ArrayList<>();
    for (int i = 0; i < 100; i++) {
      all.addAll(grant(i % 2 == 0 ? A : B, HeldBlocks.Wanted.NOTHING));
    }
    assertThat(all).containsExactlyInAnyOrderElementsOf(IntStream.range(0, 100).boxed().toList());
  }

  /** The node has it for long, and would not fetch it again: it would be on its way for nothing. */
  @Test
  void grant_inOrder_passesOverBlocksThatWereAskedForBefore() {
    assertThat(grant(A, missed(3, 9))).contains(3, 9);
    nanos.addAndGet(Handout.LEASE_NANOS + 1);

    List<Integer> all = new ArrayList<>();
    for (int i = 0; i < 100; i++) {
      all.addAll(grant(i % 2 == 0 ? A : B, HeldBlocks.Wanted.NOTHING));
    }
    assertThat(all).doesNotContain(3, 9).doesNotHaveDuplicates();
  }

  /** Its copy was evicted, or it was mounted again: nobody else is about to pass the blocks on. */
  @Test
  void grant_toANodeThatLostWhatItWasGiven_givesItAgain() {
    assertThat(grant(A, missed(3, 9))).contains(3, 9);
    assertThat(grant(A, missed(3, 9))).isNotEmpty().doesNotContain(3, 9);

    nanos.addAndGet(Handout.ARRIVAL_NANOS);
    assertThat(grant(B, missed(3, 9))).isNotEmpty().doesNotContain(3, 9);
    assertThat(grant(A, missed(3, 9))).contains(3, 9);
  }

  @Test
  void grant_longAfterAllWasGiven_beginsAnew() {
    while (!grant(A, HeldBlocks.Wanted.NOTHING).isEmpty()) {}
    nanos.addAndGet(Handout.IDLE_NANOS + 1);
    assertThat(grant(B, HeldBlocks.Wanted.NOTHING)).contains(0);
  }

  @Test
  void grant_ofABlockThatNobodyPassedOn_givesItAgainAfterAWhile() {
    assertThat(grant(A, missed(3))).contains(3);
    nanos.addAndGet(Handout.LEASE_NANOS);
    assertThat(grant(B, missed(3))).contains(3);
  }

  @Test
  void grant_whileManyBlocksAreOnTheirWay_givesNoMore() {
    int count = 0;
    for (int i = 0; i < 100; i++) {
      count += handout.grant(new UUID(2, i), HeldBlocks.Wanted.NOTHING).size();
    }
    assertThat(count).isEqualTo(Handout.MOST_PENDING);
    handout.sent(0);
    assertThat(handout.grant(A, HeldBlocks.Wanted.NOTHING)).hasSize(1);
  }

  /** A node that dies, or lies. */
  @Test
  void grant_toOneThatTakesNothing_leavesHalfForOthers() {
    int count = 0;
    for (int i = 0; i < 100; i++) {
      count += handout.grant(A, HeldBlocks.Wanted.NOTHING).size();
    }
    assertThat(count).isEqualTo(Handout.MOST_PENDING / 2);
    assertThat(handout.grant(B, missed(99))).contains(99);
    assertThat(handout.grant(A, missed(98))).isEmpty();
    nanos.addAndGet(Handout.LEASE_NANOS + 1);
    assertThat(handout.grant(A, missed(98))).contains(98);
  }

  @Test
  void grant_afterBlocksWereNeverFetched_goesOn() {
    for (int i = 0; i < Handout.MOST_PENDING; i++) {
      assertThat(handout.grant(new UUID(2, i), HeldBlocks.Wanted.NOTHING).size()).isLessThan(17);
    }
    assertThat(handout.grant(A, missed(99))).isEmpty();
    nanos.addAndGet(Handout.LEASE_NANOS + 1);
    assertThat(handout.grant(A, missed(99))).contains(99);
  }

  /** The answer with the offer was lost, or the node forgot it. */
  @Test
  void grant_ofABlockThatTheAskerWasOfferedAndStillMisses_offersItAgain() {
    assertThat(handout.grant(A, missed(3))).contains(3);
    assertThat(handout.grant(A, missed(3))).contains(3);
    HeldBlocks.Wanted more = new HeldBlocks.Wanted(List.of(), List.of(3));
    assertThat(handout.grant(A, more)).contains(3);
    assertThat(handout.grant(B, missed(3))).doesNotContain(3);
    handout.sent(3);
    assertThat(handout.grant(A, missed(3))).as("it is there soon").doesNotContain(3);
  }

  @Test
  void grant_toANodeThatKeepsNothing_isWhatItWants() {
    assertThat(handout.grant(null, missed(7))).containsExactly(7);
    assertThat(handout.grant(null, missed(7))).containsExactly(7);
    assertThat(handout.askers()).isZero();
  }

  @Test
  void grant_ofBlocksThatTheFileLacks_isNone() {
    assertThat(grant(A, missed(100, Integer.MAX_VALUE))).allMatch(block -> block < 100);
  }

  @Test
  void others_areThoseThatAskNow() {
    grant(A, HeldBlocks.Wanted.NOTHING);
    grant(B, HeldBlocks.Wanted.NOTHING);
    assertThat(handout.others(A)).containsExactly(B);
    nanos.addAndGet(Handout.IDLE_NANOS + 1);
    grant(A, HeldBlocks.Wanted.NOTHING);
    assertThat(handout.others(A)).isEmpty();
  }
}
