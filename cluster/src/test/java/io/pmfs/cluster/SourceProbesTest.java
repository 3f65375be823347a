package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.tier.Await;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
final class SourceProbesTest {
  private static final Duration PATIENCE = Duration.ofMillis(200);

  private final Member peer = new Member(new UUID(1, 2), 3, "a", "127.0.0.1", 1);
  private final Suspects suspects = new Suspects(System::nanoTime);
  private final SourceProbes probes = new SourceProbes(suspects, PATIENCE);
  private final AtomicInteger asked = new AtomicInteger();
  private final CountDownLatch held = new CountDownLatch(1);

  @AfterEach
  void stop() {
    held.countDown();
    probes.close();
  }

  private void hang() {
    asked.incrementAndGet();
    try {
      held.await();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private static void pass() throws InterruptedException {
    Thread.sleep(5 * PATIENCE.toMillis());
  }

  @Test
  void answer_whileThePeerWaits_hasItSuspected() throws Exception {
    try (SourceProbes.Question question = probes.begin(peer, asked::incrementAndGet)) {
      assertThat(question).isNotNull();
      Await.until("the source was asked", () -> suspects.isSuspected(peer));
    }
    assertThat(asked.get()).isPositive();
  }

  @Test
  void noAnswer_whateverIsAsked_takesOneThreadAndNobodyIsSuspected() throws Exception {
    try (SourceProbes.Question one = probes.begin(peer, this::hang);
        SourceProbes.Question two = probes.begin(peer, this::hang)) {
      assertThat(one).isNotSameAs(two);
      Await.until("the source was asked", () -> asked.get() > 0);
      pass();
    }
    assertThat(asked).hasValue(1);
    held.countDown();
    pass();
    assertThat(suspects.isSuspected(peer)).as("after the peer has answered").isFalse();
  }

  @Test
  void failure_ofTheSource_saysNothingOfThePeer() throws Exception {
    try (SourceProbes.Question question =
        probes.begin(
            peer,
            () -> {
              asked.incrementAndGet();
              throw new FsException(Errno.EIO, "the source");
            })) {
      assertThat(question).isNotNull();
      Await.until("the source was asked again", () -> asked.get() > 1);
    }
    assertThat(suspects.isSuspected(peer)).isFalse();
  }

  @Test
  void question_thatIsAnsweredSoon_asksTheSourceForNothing() throws Exception {
    probes.begin(peer, asked::incrementAndGet).close();
    pass();
    assertThat(asked).hasValue(0);
  }
}
