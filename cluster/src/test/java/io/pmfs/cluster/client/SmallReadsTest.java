package io.pmfs.cluster.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.util.concurrent.Uninterruptibles;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.FakeService;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.PeerFormat;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import java.nio.ByteBuffer;
import java.time.Duration;
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

  private static SmallRead small(Patience patience) {
    return new SmallRead(
        new PeerFormat.BatchItem(FileName.of("f"), FakeService.version(new byte[5]), false),
        ByteBuffer.allocateDirect(5),
        patience);
  }

  /** Reads with several threads, of which one asks and the others wait behind it. */
  private List<SmallRead> readByMany(int count, PeerException.Kind kind) throws Exception {
    PeerException why = new PeerException(kind, "no answer");
    SmallReads reads =
        new SmallReads(
            1,
            (batch, left) -> {
              sent.add(batch);
              Uninterruptibles.awaitUninterruptibly(answered);
              batch.forEach(read -> read.fail(why));
              return kind == PeerException.Kind.UNREACHABLE ? why : null;
            },
            () -> false);
    List<SmallRead> all = new ArrayList<>();
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      SmallRead read = small(Patience.endless());
      all.add(read);
      Thread thread = new Thread(() -> reads.perform(read));
      threads.add(thread);
      thread.start();
      Await.until("it asks or waits", () -> isWaiting(thread));
    }
    answered.countDown();
    for (Thread thread : threads) {
      thread.join();
    }
    return all;
  }

  private static boolean isWaiting(Thread thread) {
    return thread.getState() == Thread.State.WAITING
        || thread.getState() == Thread.State.TIMED_WAITING;
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

  /** Its place is not lost: those behind it are asked for. */
  @Test
  void read_whoseReaderHasWaitedForLongEnough_failsAloneAndTheOthersGoOn() throws Exception {
    PeerException why = new PeerException(PeerException.Kind.REFUSED, "no answer");
    SmallReads reads =
        new SmallReads(
            1,
            (batch, left) -> {
              sent.add(batch);
              Uninterruptibles.awaitUninterruptibly(answered);
              batch.forEach(read -> read.fail(why));
              return null;
            },
            () -> false);
    SmallRead first = small(Patience.endless());
    SmallRead hasty = small(new Patience(Duration.ofMillis(100)));
    SmallRead last = small(Patience.endless());
    List<Thread> threads = new ArrayList<>();
    for (SmallRead read : List.of(first, hasty, last)) {
      Thread thread = new Thread(() -> reads.perform(read));
      threads.add(thread);
      thread.start();
      Await.until("it asks or waits", () -> isWaiting(thread) || read.hasEnded());
    }
    threads.get(1).join();

    assertThatThrownBy(() -> hasty.result(PEER, 0))
        .isInstanceOfSatisfying(
            PeerException.class, e -> assertThat(e.kind()).isEqualTo(PeerException.Kind.LATE));
    assertThat(hasty.patience().isOver()).isTrue();
    assertThat(sent).containsExactly(List.of(first));
    answered.countDown();
    threads.get(0).join();
    threads.get(2).join();
    assertThat(sent).containsExactly(List.of(first), List.of(last));
  }

  /** A file that is read with others after its reader has gone: another reader uses the memory. */
  @Test
  void take_ofAReadThatHasEnded_passesOverItsBytesAndWritesNothing() {
    ByteBuffer destination = ByteBuffer.allocateDirect(5);
    SmallRead read =
        new SmallRead(
            new PeerFormat.BatchItem(FileName.of("f"), FakeService.version(new byte[5]), false),
            destination.duplicate(),
            Patience.endless());
    ByteBuf bytes = Unpooled.wrappedBuffer(new byte[] {1, 2, 3, 4, 5, 6, 7});
    assertThat(read.take(bytes.readSlice(2))).isFalse();
    read.fail(new PeerException(PeerException.Kind.LATE, "gone"));
    assertThat(read.take(bytes.readSlice(1))).isFalse();
    assertThat(read.take(bytes)).isTrue();
    assertThat(bytes.readableBytes()).isEqualTo(2);
    assertThat(destination).isEqualTo(ByteBuffer.wrap(new byte[] {1, 2, 0, 0, 0}));
  }
}
