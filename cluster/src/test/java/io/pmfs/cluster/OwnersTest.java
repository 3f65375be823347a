package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;

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

  /** Such as one that is suspected, which is asked again when it is back. */
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
}
