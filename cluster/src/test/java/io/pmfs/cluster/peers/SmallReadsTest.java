package io.pmfs.cluster.peers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.util.concurrent.Uninterruptibles;
import io.pmfs.cluster.members.Member;
import io.pmfs.metadata.FileName;
import io.pmfs.tier.Await;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

final class SmallReadsTest {
  private static final Member PEER = new Member(new UUID(1, 2), 3, "peer", "-", 0);

  private final CountDownLatch answered = new CountDownLatch(1);
  private final List<List<SmallRead>> sent = Collections.synchronizedList(new ArrayList<>());

  private static SmallRead small() {
    return new SmallRead(
        new PeerFormat.BatchItem(FileName.of("f"), FakeService.version(new byte[5]), false),
        ByteBuffer.allocateDirect(5));
  }

  /** Reads with several threads, of which one asks and the others wait behind it. */
  private List<SmallRead> readByMany(int count, PeerException.Kind kind) throws Exception {
    PeerException why = new PeerException(kind, "no answer");
    SmallReads reads =
        new SmallReads(
            1,
            batch -> {
              sent.add(batch);
              Uninterruptibles.awaitUninterruptibly(answered);
              batch.forEach(read -> read.fail(why));
              return kind == PeerException.Kind.UNREACHABLE ? why : null;
            });
    List<SmallRead> all = new ArrayList<>();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      SmallRead read = small();
      all.add(read);
      Thread thread = new Thread(() -> reads.perform(read));
      threads.add(thread);
      thread.start();
      Await.until("it asks or waits", () -> thread.getState() == Thread.State.WAITING);
    }
    answered.countDown();
    for (Thread thread : threads) {
      thread.join();
    }
    return all;
  }

  @Test
  void read_ofAPeerThatIsNotThere_failsWithThoseThatWaited() throws Exception {
    List<SmallRead> all = readByMany(5, PeerException.Kind.UNREACHABLE);

    assertThat(sent).as("one request failed for all").hasSize(1);
    for (SmallRead read : all) {
      assertThatThrownBy(() -> read.result(PEER, 0)).hasMessage("no answer");
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = PeerException.Kind.class,
      mode = EnumSource.Mode.EXCLUDE,
      names = "UNREACHABLE")
  void read_ofAPeerThatRefuses_isAskedForByThoseThatWaited(PeerException.Kind kind)
      throws Exception {
    readByMany(5, kind);

    assertThat(sent).extracting(List::size).containsExactly(1, 4);
  }
}
