package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cluster.members.Member;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.posix.NoThreads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
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
  void noAnswer_howeverManyAreAsked_takesAFewThreadsAndNobodyIsSuspected() throws Exception {
    List<SourceProbes.Question> questions = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      questions.add(probes.begin(peer, this::hang));
    }
    Await.until("the source was asked", () -> asked.get() > 0);
    Await.until("others were asked", () -> asked.get() == SourceProbes.MOST);
    pass();
    assertThat(asked).hasValue(SourceProbes.MOST);
    questions.forEach(SourceProbes.Question::close);
    held.countDown();
    pass();
    assertThat(suspects.isSuspected(peer)).as("after the peer has answered").isFalse();
  }

  /** For example a file on the one server of the source that does not answer. */
  @Test
  void answer_toOneOfSeveral_hasThePeerSuspected() throws Exception {
    try (SourceProbes.Question hangs = probes.begin(peer, this::hang)) {
      Await.until("the source was asked", () -> asked.get() > 0);
      try (SourceProbes.Question answers = probes.begin(peer, () -> {})) {
        assertThat(hangs).isNotSameAs(answers);
        Await.until("it answered another question", () -> suspects.isSuspected(peer));
      }
    }
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

  /** Nor does it cost one of the threads that may ask. */
  @Test
  void error_whileTheSourceIsAsked_saysNothingOfThePeerAndItIsAskedAgain() throws Exception {
    try (SourceProbes.Question question =
        probes.begin(
            peer,
            () -> {
              asked.incrementAndGet();
              throw new StackOverflowError();
            })) {
      assertThat(question).isNotNull();
      Await.until("the source was asked again", () -> asked.get() > SourceProbes.MOST);
    }
    assertThat(suspects.isSuspected(peer)).isFalse();
  }

  @Test
  void question_whileNoThreadCanBeStarted_isAskedLater() throws Exception {
    try (SourceProbes.Question question = probes.begin(peer, asked::incrementAndGet)) {
      assertThat(question).isNotNull();
      try (NoThreads none = NoThreads.named("pmfs-source-probe")) {
        Await.until("a few could not be started", () -> none.refused() > SourceProbes.MOST);
        assertThat(asked).hasValue(0);
      }
      Await.until("the source was asked", () -> suspects.isSuspected(peer));
    }
  }

  @Test
  void question_thatIsAnsweredSoon_asksTheSourceForNothing() throws Exception {
    probes.begin(peer, asked::incrementAndGet).close();
    pass();
    assertThat(asked).hasValue(0);
  }
}
