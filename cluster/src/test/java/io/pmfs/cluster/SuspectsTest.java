package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cluster.members.Member;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

final class SuspectsTest {
  private final AtomicLong now = new AtomicLong();
  private final Suspects suspects = new Suspects(now::get);
  private final Member peer = new Member(new UUID(1, 2), 3, "a", "127.0.0.1", 1);

  private void pass(Duration time) {
    now.addAndGet(time.toNanos());
  }

  @Test
  void failed_isNotAskedForAWhile_thenByOneCallerAtATime() {
    suspects.failed(peer, "it was silent");
    assertThat(suspects.mayAsk(peer)).isFalse();

    pass(Suspects.FIRST);

    assertThat(suspects.mayAsk(peer)).isTrue();
    assertThat(suspects.mayAsk(peer)).isFalse();
  }

  @Test
  void failed_againAndAgain_doublesThePauseUpToALimit() {
    suspects.failed(peer, "it was silent");
    Duration pause = Suspects.FIRST;
    for (int i = 0; i < 10; i++) {
      pass(pause);
      assertThat(suspects.mayAsk(peer)).isTrue();
      pass(pause);
      suspects.failed(peer, "it was silent");
      pause =
          pause.multipliedBy(2).compareTo(Suspects.LAST) > 0
              ? Suspects.LAST
              : pause.multipliedBy(2);
      pass(pause.minusMillis(1));
      assertThat(suspects.mayAsk(peer)).as("after %s", pause).isFalse();
      pass(Duration.ofMillis(1).minus(pause));
    }
    assertThat(pause).isEqualTo(Suspects.LAST);
  }

  @Test
  void failed_byManyAtOnce_countsOnce() {
    for (int i = 0; i < 100; i++) {
      suspects.failed(peer, "it was silent");
    }
    pass(Suspects.FIRST);
    assertThat(suspects.mayAsk(peer)).isTrue();
  }

  @Test
  void answered_isAskedAgain() {
    suspects.failed(peer, "it was silent");
    suspects.answered(peer);
    assertThat(suspects.mayAsk(peer)).isTrue();
    assertThat(suspects.isSuspected(peer)).isFalse();
  }

  @Test
  void failed_beforeItWasStartedAgain_saysNothingOfTheNewOne() {
    suspects.failed(peer, "it was silent");
    Member again = new Member(peer.id(), 4, "a", "127.0.0.1", 1);
    assertThat(suspects.mayAsk(again)).isTrue();
    assertThat(suspects.isSuspected(again)).isFalse();
  }
}
