package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.cluster.client.PeerClient;
import io.pmfs.cluster.peers.HeldBlocks;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.server.PeerService;
import io.pmfs.memory.CollectingSink;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.source.FaultyStore;
import io.pmfs.source.SourceOperations;
import io.pmfs.stage.copies.RemoteCopies;
import io.pmfs.stage.formats.Blocks;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Nodes that read one large file at the same time pass its blocks on to each other. */
@Timeout(60)
final class LargeFileTogetherTest {
  private static final long AMPLE = 1L << 30;
  private static final int BLOCKS = 48;
  private static final FileName LARGE = FileName.of("large");

  @TempDir Path directory;

  private TestNodes nodes(int count) throws Exception {
    return nodes(count, direct -> direct);
  }

  private TestNodes nodes(int count, UnaryOperator<PeerClient> clients) throws Exception {
    TestNodes nodes = new TestNodes(directory, RemoteCopies.KEEP, 1, AMPLE, clients);
    nodes.store.file("large", 1, (long) BLOCKS * Blocks.SIZE);
    for (int i = 0; i < count; i++) {
      nodes.add();
    }
    nodes.meet();
    return nodes;
  }

  private static TestNodes.Node owner(TestNodes nodes) {
    return nodes.nodes.stream()
        .filter(node -> node.owners.isSelf(node.owners.of(LARGE).get(0)))
        .findFirst()
        .orElseThrow();
  }

  private static List<TestNodes.Node> others(TestNodes nodes) {
    List<TestNodes.Node> others = new ArrayList<>(nodes.nodes);
    others.remove(owner(nodes));
    return others;
  }

  /** Reads the file on all these nodes at the same time, and compares it. */
  private static void readTogether(TestNodes nodes, List<TestNodes.Node> readers) throws Exception {
    for (CompletableFuture<Void> read : beginToRead(nodes, readers)) {
      read.get();
    }
  }

  private static List<CompletableFuture<Void>> beginToRead(
      TestNodes nodes, List<TestNodes.Node> readers) {
    byte[] expected = nodes.expected().get("large");
    List<CompletableFuture<Void>> reads = new ArrayList<>();
    for (TestNodes.Node node : readers) {
      CompletableFuture<Void> read = new CompletableFuture<>();
      reads.add(read);
      new Thread(
              () -> {
                try {
                  assertThat(node.read("large")).isEqualTo(expected);
                  read.complete(null);
                } catch (Throwable e) {
                  read.completeExceptionally(e);
                }
              })
          .start();
    }
    return reads;
  }

  private static long givenBy(TestNodes nodes, TestNodes.Node giver) {
    return nodes.nodes.stream()
        .mapToLong(node -> node.given.getOrDefault(giver.member.id(), 0L))
        .sum();
  }

  /** As on a link: each transfer from a node takes a while, so that all of them overlap. */
  private static void slowDown(TestNodes nodes) {
    nodes.fault = (from, to) -> LockSupport.parkNanos(2_000_000);
  }

  @Test
  void read_byFourAtOnce_leavesTheSourceOnceAndTheOwnerHardlyMore() throws Exception {
    try (TestNodes nodes = nodes(4)) {
      slowDown(nodes);
      readTogether(nodes, nodes.nodes);
      for (TestNodes.Node node : nodes.nodes) {
        node.awaitIdle();
        assertThat(node.hasCopy("large")).isTrue();
      }
      long size = (long) BLOCKS * Blocks.SIZE;
      assertThat(nodes.asked(SourceOperations::bytes)).isEqualTo(size);
      // Three nodes got all of it. The first block of each may be asked for before any is offered.
      assertThat(givenBy(nodes, owner(nodes))).isLessThan(size * 3 / 2);
      for (TestNodes.Node node : others(nodes)) {
        assertThat(givenBy(nodes, node)).isGreaterThan(size / 8);
      }
    }
  }

  @Test
  void open_forCopiesOnlyWhileTheFileIsFetched_givesWhatHasComeAndWaitsForNothing()
      throws Exception {
    try (TestNodes nodes = nodes(3)) {
      TestNodes.Node middle = others(nodes).get(0);
      CountDownLatch isHeld = new CountDownLatch(1);
      AtomicInteger passed = new AtomicInteger();
      AtomicInteger held = new AtomicInteger();
      nodes.fault =
          (from, to) -> {
            if (from == middle && passed.incrementAndGet() > 40) {
              held.incrementAndGet();
              try {
                isHeld.await();
              } catch (InterruptedException e) {
                throw new PeerException(PeerException.Kind.FAILED, "interrupted");
              }
            }
          };
      CompletableFuture<Void> reading =
          CompletableFuture.runAsync(
              () -> {
                try {
                  readTogether(nodes, List.of(middle));
                } catch (Exception e) {
                  throw new IllegalStateException(e);
                }
              });
      SourceVersion version = nodes.store.expectedStatus(LARGE).attributes().version();
      UUID asker = others(nodes).get(1).member.id();
      Await.until("reads are held", () -> held.get() > 0);
      HeldBlocks has = middle.service.blocks(LARGE, version, asker, HeldBlocks.Wanted.NOTHING);
      int there = has.units().nextSetBit(0);
      int lacks = BLOCKS - 1;
      assertThat(has.units().cardinality()).isBetween(1, BLOCKS - 1);
      assertThat(has.has(lacks)).isFalse();
      assertThat(has.granted()).isEmpty();

      PeerService.Content content = middle.service.open(LARGE, version, true, asker);
      CollectingSink sink = new CollectingSink();
      content.copyTo((long) there * Blocks.SIZE, Blocks.SIZE, sink);
      assertThat(sink.answer())
          .isEqualTo(nodes.store.expected(LARGE, (long) there * Blocks.SIZE, Blocks.SIZE));
      assertThatThrownBy(
              () -> content.copyTo((long) lacks * Blocks.SIZE, Blocks.SIZE, new CollectingSink()))
          .isInstanceOf(PeerException.class)
          .hasMessageContaining("does not have this part yet");
      isHeld.countDown();
      reading.get();
    }
  }

  /** What becomes of an answer. */
  private interface Fate {
    @Nullable Object of(String method, Object[] arguments, @Nullable Object answer)
        throws PeerException;
  }

  private static PeerClient proxy(PeerClient honest, Fate fate) {
    return (PeerClient)
        Proxy.newProxyInstance(
            PeerClient.class.getClassLoader(),
            new Class<?>[] {PeerClient.class},
            (proxy, method, arguments) -> {
              try {
                return fate.of(method.getName(), arguments, method.invoke(honest, arguments));
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  /** Answers questions for blocks as {@code lie} has it. */
  private static UnaryOperator<PeerClient> lying(UnaryOperator<HeldBlocks> lie) {
    return honest ->
        proxy(
            honest,
            (method, arguments, answer) ->
                answer instanceof HeldBlocks held ? lie.apply(held) : answer);
  }

  private void assertReadWhateverIsSaid(UnaryOperator<HeldBlocks> lie) throws Exception {
    try (TestNodes nodes = nodes(3, lying(lie))) {
      slowDown(nodes);
      readTogether(nodes, nodes.nodes);
      assertThat(nodes.asked(SourceOperations::bytes)).isEqualTo((long) BLOCKS * Blocks.SIZE);
    }
  }

  @Test
  void read_whereNodesClaimBlocksThatTheyLack_succeeds() throws Exception {
    BitSet all = new BitSet();
    all.set(0, 10 * BLOCKS);
    assertReadWhateverIsSaid(
        held -> new HeldBlocks(1, all, held.askers(), held.others(), held.granted()));
  }

  @Test
  void read_whereNobodyAdmitsToAnything_succeeds() throws Exception {
    assertReadWhateverIsSaid(held -> new HeldBlocks(1, new BitSet(), 0, List.of(), List.of()));
  }

  @Test
  void read_whereStrangersAreNamed_succeeds() throws Exception {
    List<UUID> strangers = List.of(new UUID(9, 1), new UUID(9, 2));
    assertReadWhateverIsSaid(
        held ->
            new HeldBlocks(
                held.unit(), held.units(), Integer.MAX_VALUE, strangers, List.of(BLOCKS, 1 << 30)));
  }

  @Test
  void read_whileANodeDies_succeedsOnTheOthersWithoutTheSource() throws Exception {
    try (TestNodes nodes = nodes(4)) {
      TestNodes.Node victim = others(nodes).get(0);
      AtomicInteger asked = new AtomicInteger();
      nodes.fault =
          (from, to) -> {
            LockSupport.parkNanos(2_000_000);
            if ((from == victim || to == victim) && asked.incrementAndGet() > 40) {
              throw new PeerException(PeerException.Kind.UNREACHABLE, "it died");
            }
          };
      List<TestNodes.Node> survivors = new ArrayList<>(nodes.nodes);
      survivors.remove(victim);
      // The victim cannot reach anybody any more, and reads the rest from the source.
      readTogether(nodes, nodes.nodes);
      long size = (long) BLOCKS * Blocks.SIZE;
      assertThat(asked.get()).isGreaterThan(40);
      long bySurvivors = survivors.stream().mapToLong(node -> node.asked().bytes()).sum();
      assertThat(bySurvivors).isEqualTo(size);
    }
  }

  /** The owner does not confirm what others passed on, and their own sources open no file. */
  @Test
  void copy_ofBlocksThatWerePassedOnAndAreNotProved_isNotKept() throws Exception {
    AtomicBoolean isRefused = new AtomicBoolean();
    try (TestNodes nodes = nodes(4, honest -> refusingProofs(honest, isRefused))) {
      TestNodes.Node owner = owner(nodes);
      owner.read("large");
      owner.awaitIdle();
      assertThat(owner.hasCopy("large")).isTrue();
      for (TestNodes.Node node : others(nodes)) {
        node.faulty.on(FaultyStore.Operation.OPEN).fail(Errno.EIO);
      }
      nodes.fault =
          (from, to) -> {
            LockSupport.parkNanos(2_000_000);
            // A second attempt to copy must not be given all by the owner, which needs no proof.
            if (to == owner && isRefused.get()) {
              throw new PeerException(PeerException.Kind.UNREACHABLE, "it is away");
            }
          };
      for (CompletableFuture<Void> read : beginToRead(nodes, others(nodes))) {
        // What was not proved may be refused.
        read.handle((nothing, problem) -> problem).get();
      }
      for (TestNodes.Node node : others(nodes)) {
        node.awaitIdle();
      }
      // One that was given all of it by the owner needs no proof: on a busy machine there may be
      // one.
      List<TestNodes.Node> givenByOthers =
          others(nodes).stream()
              .filter(node -> node.given.keySet().stream().anyMatch(id -> !isOf(id, owner)))
              .toList();
      assertThat(givenByOthers).isNotEmpty();
      assertThat(isRefused).isTrue();
      for (TestNodes.Node node : givenByOthers) {
        assertThat(node.hasCopy("large")).isFalse();
      }
    }
  }

  private static boolean isOf(UUID id, TestNodes.Node node) {
    return id.equals(node.member.id());
  }

  /** A question for a single byte asks for a proof. */
  private static PeerClient refusingProofs(PeerClient honest, AtomicBoolean isRefused) {
    return proxy(
        honest,
        (method, arguments, answer) -> {
          if (method.equals("fetch") && ((ByteBuffer) arguments[4]).capacity() == 1) {
            isRefused.set(true);
            throw new PeerException(PeerException.Kind.REFUSED, "another version");
          }
          return answer;
        });
  }
}
