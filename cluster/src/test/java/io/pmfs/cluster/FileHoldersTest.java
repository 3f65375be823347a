package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.HeldBlocks;
import java.util.BitSet;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

final class FileHoldersTest {
  private static final int COUNT = 20;
  private static final Member OWNER = member(0);
  private static final Member A = member(1);
  private static final Member B = member(2);

  private final AtomicLong nanos = new AtomicLong(3);
  private final FileHolders holders = new FileHolders(OWNER, COUNT, nanos::get);
  private final BitSet missing = blocks(0, COUNT);

  private static Member member(int number) {
    return new Member(new UUID(1, number), 1, "n" + number, "-", 0);
  }

  private static BitSet blocks(int from, int to) {
    BitSet blocks = new BitSet();
    blocks.set(from, to);
    return blocks;
  }

  private void pass(long millis) {
    nanos.addAndGet(TimeUnit.MILLISECONDS.toNanos(millis));
  }

  private void hear(Member member, BitSet has, Integer... granted) {
    hear(member, has, List.of(granted));
  }

  private void hear(Member member, BitSet has, List<Integer> granted) {
    holders.heard(member, HeldBlocks.of(COUNT, has, 3, List.of(), granted));
  }

  @BeforeEach
  void know() {
    holders.add(A);
    holders.add(B);
  }

  @Test
  void plan_beforeAnybodyAnswered_isNothing() {
    assertThat(holders.plan(missing)).isNegative();
    Set<Member> overdue = new HashSet<>();
    for (int i = 0; i < 3; i++) {
      overdue.add(holders.overdue());
    }
    assertThat(overdue).containsExactlyInAnyOrder(OWNER, A, B);
    assertThat(holders.overdue()).isNull();
    assertThat(holders.due()).isNull();
  }

  @Test
  void plan_ofBlocksOfSeveral_takesEachOnceAndOfNobodyMany() {
    hear(OWNER, new BitSet(), 5, 6);
    hear(A, blocks(0, 10));
    hear(B, blocks(0, 10));
    Set<Integer> planned = new HashSet<>();
    for (int i = 0; i < 6; i++) {
      planned.add(holders.plan(missing));
    }
    assertThat(planned).hasSize(6).doesNotContain(-1).contains(5, 6);
    assertThat(holders.plan(missing)).isNegative();
    assertThat(holders.take(5)).isEqualTo(OWNER);
  }

  @Test
  void take_ofABlockThatOneHas_isFromThatOne() {
    hear(A, blocks(3, 4));
    assertThat(holders.take(3)).isEqualTo(A);
    assertThat(holders.take(4)).isNull();
  }

  @Test
  void nodeThatIsBusy_isLeftAloneForAMoment() {
    hear(A, blocks(3, 4));
    assertThat(holders.take(3)).isEqualTo(A);
    holders.done(3, A, FileHolders.End.BUSY);
    assertThat(holders.take(3)).isNull();
    pass(20);
    assertThat(holders.take(3)).isEqualTo(A);
  }

  @Test
  void nodeThatFails_isAskedAgainAfterAPauseThatDoubles() {
    hear(OWNER, new BitSet(), 19);
    assertThat(List.of(holders.due(), holders.due())).containsExactly(A, B);
    for (int pause : new int[] {100, 200, 400}) {
      hear(A, blocks(3, 4));
      assertThat(holders.take(3)).isEqualTo(A);
      holders.done(3, A, FileHolders.End.FAILED);
      pass(pause - 1);
      assertThat(holders.due()).isNotEqualTo(A);
      pass(1);
      assertThat(holders.due()).isEqualTo(A);
    }
  }

  @Test
  void reader_waitsWhileBlocksComeAndNoLonger() {
    hear(OWNER, new BitSet());
    hear(A, blocks(3, 4));
    for (int i = 0; i < 4; i++) {
      pass(2000);
      assertThat(holders.isStuck()).isFalse();
      holders.done(3, A, FileHolders.End.READ);
    }
    pass(3001);
    assertThat(holders.isStuck()).as("nothing came for 3 s").isTrue();
    assertThat(holders.planOfOwner(missing)).isZero();
    assertThat(holders.take(0)).isEqualTo(OWNER);
    holders.done(0, OWNER, FileHolders.End.READ);
    assertThat(holders.isStuck())
        .as("an owner that offers nothing is not waited for again")
        .isTrue();
    assertThat(holders.take(3)).isEqualTo(A);
    holders.done(3, A, FileHolders.End.READ);
    assertThat(holders.isStuck()).isFalse();
  }

  /** A reader's block is claimed, and so not missing for the threads that fill the copy. */
  @Test
  void offer_ofABlockThatAReaderWaitsFor_isKeptForIt() {
    holders.awaits(3);
    hear(OWNER, new BitSet(), 3, 5);
    assertThat(holders.plan(blocks(4, 8))).isEqualTo(5);
    assertThat(holders.take(3)).isEqualTo(OWNER);
    holders.done(3, OWNER, FileHolders.End.READ);
    holders.awaitsNoMore(3);

    hear(OWNER, new BitSet(), 3);
    assertThat(holders.plan(blocks(8, 9))).isEqualTo(-1);
    assertThat(holders.take(3)).as("nobody wants it").isNull();
  }

  /** Another thread looks while one has claimed the block, and has not begun to read it. */
  @Test
  void offer_thatWasDroppedBeforeItsBlockWasRead_isMadeAgain() {
    Handout handout = new Handout(COUNT, nanos::get);
    UUID self = new UUID(2, 1);
    hear(OWNER, new BitSet(), handout.grant(self, holders.wanted(missing)));
    int claimed = holders.plan(missing);
    missing.clear(claimed);
    for (int block = holders.plan(missing); block >= 0; block = holders.plan(missing)) {
      assertThat(holders.take(block)).isEqualTo(OWNER);
      handout.sent(block);
      holders.done(block, OWNER, FileHolders.End.READ);
      missing.clear(block);
    }
    holders.awaits(claimed);
    assertThat(holders.take(claimed)).isNull();
    assertThat(holders.due()).isEqualTo(OWNER);
    hear(OWNER, new BitSet(), handout.grant(self, holders.wanted(claimed)));
    assertThat(holders.take(claimed)).isEqualTo(OWNER);
  }

  @Test
  void owner_thatSaysNothing_isReadFromAsBefore() {
    assertThat(holders.overdue()).isEqualTo(OWNER);
    holders.heard(OWNER, null);
    assertThat(holders.isStuck()).isTrue();
  }

  @Test
  void wanted_namesFirstWhatNobodyHas() {
    hear(A, blocks(0, 2));
    assertThat(holders.wanted(blocks(0, 4)))
        .isEqualTo(new HeldBlocks.Wanted(List.of(2, 3), List.of(0, 1)));
    assertThat(holders.wanted(1)).isEqualTo(new HeldBlocks.Wanted(List.of(), List.of(1)));
    assertThat(holders.wanted(2)).isEqualTo(new HeldBlocks.Wanted(List.of(2), List.of()));
    // The threads that fill the copy may not have seen yet that a reader claimed a block.
    holders.awaits(2);
    assertThat(holders.wanted(blocks(0, 4)))
        .isEqualTo(new HeldBlocks.Wanted(List.of(3), List.of(0, 1)));
  }

  @Test
  void nodes_areRememberedUpToALimit() {
    for (int i = 3; i < 100; i++) {
      holders.add(member(i));
    }
    Set<Member> due = new HashSet<>();
    for (Member next = holders.due(); next != null; next = holders.due()) {
      due.add(next);
    }
    assertThat(due).hasSize(FileHolders.MOST_HOLDERS + 1);
  }
}
