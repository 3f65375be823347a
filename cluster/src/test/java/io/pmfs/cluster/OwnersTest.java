package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.members.View;
import io.pmfs.metadata.FileName;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

final class OwnersTest {
  private static final FileName PATH = FileName.of("train/1");
  private static final int OFTEN = 1000;

  private final List<Member> members =
      IntStream.range(0, 3)
          .mapToObj(i -> new Member(new UUID(7, i), i, "n" + i, "127.0.0.1", 1 + i))
          .toList();
  private final List<Member> asked = new ArrayList<>();
  private Owners owners;

  @BeforeEach
  void meet() {
    owners = new Owners(members.get(0).id(), 1);
    owners.change(new View(members));
  }

  private boolean ask(Owners.Help help) {
    return owners.askHolders(
        PATH,
        member -> {
          asked.add(member);
          return help;
        });
  }

  @Test
  void holders_thatHaveNothingForLong_areNotAskedAnyMore() {
    for (int i = 0; i < OFTEN; i++) {
      assertThat(ask(Owners.Help.HAS_NONE)).isFalse();
    }
    assertThat(asked).hasSizeBetween(1, OFTEN / 2);
    asked.clear();
    ask(Owners.Help.GAVE);
    assertThat(asked).isEmpty();
  }

  /** For example a suspected owner, which is asked again when it is back. */
  @Test
  void holders_ofWhomNothingIsKnown_areAskedOn() {
    for (int i = 0; i < OFTEN; i++) {
      assertThat(ask(Owners.Help.UNKNOWN)).isFalse();
    }
    assertThat(asked).hasSize(OFTEN);
    assertThat(ask(Owners.Help.GAVE)).isTrue();
  }

  @Test
  void holders_thatHelpNowAndThen_areAskedOn() {
    for (int i = 0; i < OFTEN; i++) {
      boolean helps = i % 50 == 0;
      assertThat(ask(helps ? Owners.Help.GAVE : Owners.Help.HAS_NONE)).isEqualTo(helps);
    }
    assertThat(asked).hasSize(OFTEN);
  }

  /**
   * When a node leaves, more paths move than it owned. The former owners of those are still there,
   * and only the previous view names them.
   */
  @Test
  void holders_ofAPathThatMovedBetweenNodesThatStay_areThoseOfTheViewBefore() {
    List<Member> many =
        IntStream.range(0, 9)
            .mapToObj(i -> new Member(new UUID(9, i * 77L), i, "m" + i, "127.0.0.1", 1 + i))
            .toList();
    View before = new View(many);
    View after = new View(many.subList(0, 8));
    Ownership earlier = new Ownership(before, 1);
    Ownership now = new Ownership(after, 1);
    int moved = 0;
    for (int i = 0; i < 10_000; i++) {
      FileName path = FileName.of("f" + i);
      Member had = earlier.owners(path).get(0);
      Member has = now.owners(path).get(0);
      if (had.equals(has) || had.equals(many.get(8))) {
        continue;
      }
      moved++;
      owners = new Owners(has.id(), 1);
      owners.change(before);
      owners.change(after);
      boolean gave =
          owners.askHolders(
              path, member -> member.equals(had) ? Owners.Help.GAVE : Owners.Help.HAS_NONE);
      assertThat(gave).as("%s, which %s had and %s has", path, had, has).isTrue();
    }
    assertThat(moved).isPositive();
  }
}
