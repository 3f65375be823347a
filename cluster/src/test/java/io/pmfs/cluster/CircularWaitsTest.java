package io.pmfs.cluster;

import static io.pmfs.source.FaultyStore.Operation.LIST;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.cluster.client.HttpPeerClient;
import io.pmfs.cluster.client.Patience;
import io.pmfs.cluster.client.PeerClient;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.members.View;
import io.pmfs.cluster.peers.FakeService;
import io.pmfs.cluster.server.PeerLimits;
import io.pmfs.metadata.DirectoryEntry;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.source.SourceOperations;
import io.pmfs.stage.copies.RemoteCopies;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Nodes with few workers, whose workers ask each other at the same time, over HTTP. */
@Timeout(value = 30, unit = TimeUnit.SECONDS)
final class CircularWaitsTest {
  private static final int CANDIDATES = 64;

  /** As many reads as one peer gets at once before files are requested together. */
  private static final int READERS = 2;

  private final HttpPeerClient http =
      new HttpPeerClient(FakeService.key(), null, FakeService.PATIENT, peer -> false, null);
  private final List<HttpPeerClient> clients = new ArrayList<>();

  /** Nodes wait here before they ask for anything. */
  private volatile @Nullable CyclicBarrier beforeAny;

  /** Nodes wait here before they ask for a copy. */
  private volatile @Nullable CyclicBarrier beforeCopies;

  private TestNodes nodes;
  private TestNodes.Node first;
  private TestNodes.Node second;
  private Member firstMember;
  private Member secondMember;

  @TempDir Path directory;

  @BeforeEach
  void start() throws Exception {
    nodes = new TestNodes(directory, RemoteCopies.NEVER, 1, 1 << 30, direct -> waiting());
    first = nodes.add();
    second = nodes.add();
    firstMember = serve(first);
    secondMember = serve(second);
    View view = new View(List.of(firstMember, secondMember));
    first.see(view);
    second.see(view);
  }

  @AfterEach
  void stop() {
    http.close();
    nodes.close();
    clients.forEach(HttpPeerClient::close);
  }

  private Member serve(TestNodes.Node node) throws Exception {
    PeerLimits usual = PeerLimits.DEFAULTS;
    PeerLimits oneWorker =
        new PeerLimits(
            1,
            READERS,
            usual.queued(),
            usual.slowReaders(),
            usual.connections(),
            usual.connectionsPerAddress(),
            usual.memoryMiB(),
            usual.request(),
            usual.idle(),
            usual.processing(),
            usual.writeStall());
    return nodes.serve(node, oneWorker);
  }

  /** Waits at the barriers, then asks over HTTP. */
  private PeerClient waiting() {
    HttpPeerClient client =
        new HttpPeerClient(FakeService.key(), null, FakeService.PATIENT, peer -> false, null);
    clients.add(client);
    return (PeerClient)
        Proxy.newProxyInstance(
            PeerClient.class.getClassLoader(),
            new Class<?>[] {PeerClient.class},
            (proxy, method, arguments) -> {
              boolean isForCopies = method.getName().equals("read") && (boolean) arguments[5];
              CyclicBarrier barrier = isForCopies ? beforeCopies : beforeAny;
              if (barrier != null) {
                barrier.await();
              }
              try {
                return method.invoke(client, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  /** A new directory with that owner, in another one or in the root, with one file in it. */
  private FileName directoryOf(TestNodes.Node owner, String parent) {
    for (int i = 0; i < CANDIDATES; i++) {
      FileName path = FileName.of(parent + "d" + i);
      if (owner.owners.isOwn(path)) {
        nodes.store.directory(path.toString());
        nodes.store.file(path + "/file", i, 10);
        return path;
      }
    }
    throw new AssertionError("a node owns nothing of " + CANDIDATES + " directories");
  }

  private Future<List<String>> list(ExecutorService threads, Member peer, FileName path) {
    return threads.submit(
        () -> {
          List<String> names = new ArrayList<>();
          http.list(
              peer,
              path,
              batch ->
                  batch.stream().map(SourceEntry::name).map(FileName::toString).forEach(names::add),
              Patience.endless());
          return names;
        });
  }

  @Test
  void list_whileTheWorkersOfBothNodesAskEachOther_isAnsweredFromTheSource() throws Exception {
    FileName aboveFirsts = directoryOf(second, "a");
    FileName firsts = directoryOf(first, aboveFirsts + "/");
    FileName aboveSeconds = directoryOf(first, "b");
    FileName seconds = directoryOf(second, aboveSeconds + "/");
    // Both know the root, so that a worker's first question is for what the other node owns.
    first.number(aboveSeconds.toString());
    second.number(aboveFirsts.toString());
    List<FileName> listed = Collections.synchronizedList(new ArrayList<>());
    first.faulty.on(LIST).run(listed::add);
    second.faulty.on(LIST).run(listed::add);
    CyclicBarrier bothAsk = new CyclicBarrier(2, () -> beforeAny = null);
    beforeAny = bothAsk;
    ExecutorService threads = Executors.newFixedThreadPool(2);
    try {
      Future<List<String>> ofFirst = list(threads, firstMember, firsts);
      Future<List<String>> ofSecond = list(threads, secondMember, seconds);

      assertThat(ofFirst.get()).containsExactly("file");
      assertThat(ofSecond.get()).containsExactly("file");
    } finally {
      threads.shutdownNow();
    }
    assertThat(bothAsk.getNumberWaiting()).isZero();
    assertThat(Set.copyOf(listed))
        .containsExactlyInAnyOrder(aboveFirsts, firsts, aboveSeconds, seconds);
    assertThat(first.suspects.isSuspected(secondMember)).isFalse();
  }

  /** Nodes that see different members; each takes the other one for a directory's first owner. */
  @RepeatedTest(3)
  void list_whenNodesDoNotAgreeWhoComesFirst_isAnsweredFromTheSource() throws Exception {
    FileName disputed = disagree();
    nodes.store.directory(disputed.toString());
    nodes.store.file(disputed + "/file", 1, 10);
    long ofFirst = first.number(disputed.toString());
    long ofSecond = second.number(disputed.toString());

    atOnce(() -> list(first, ofFirst), () -> list(second, ofSecond));
  }

  /** The same for a file; the reader of each node has claimed the block that the other asks for. */
  @RepeatedTest(3)
  void read_whenNodesDoNotAgreeWhoComesFirst_isAnsweredFromTheSource() throws Exception {
    FileName disputed = disagree();
    nodes.store.file(disputed.toString(), 1, 1000);
    long ofFirst = first.number(disputed.toString());
    long ofSecond = second.number(disputed.toString());
    byte[] expected = nodes.expected().get(disputed.toString());

    atOnce(
        () -> assertThat(first.read(ofFirst)).isEqualTo(expected),
        () -> assertThat(second.read(ofSecond)).isEqualTo(expected));
  }

  /**
   * Restarts the nodes with two owners for each path; returns one that each leaves to the other.
   */
  private FileName disagree() throws Exception {
    nodes.close();
    nodes =
        new TestNodes(
            directory.resolve("two"), RemoteCopies.NEVER, 2, 1 << 30, direct -> waiting());
    first = nodes.add();
    second = nodes.add();
    firstMember = serve(first);
    secondMember = serve(second);
    for (long i = 0; ; i++) {
      Member stranger = new Member(new UUID(i, 7), 1, "a", "127.0.0.1", 1);
      Member other = new Member(new UUID(i, 8), 1, "b", "127.0.0.1", 1);
      first.see(new View(List.of(firstMember, secondMember, stranger)));
      second.see(new View(List.of(firstMember, secondMember, other)));
      for (int j = 0; j < 1000; j++) {
        FileName path = FileName.of("disputed" + j);
        if (first.owners.of(path).equals(List.of(secondMember, firstMember))
            && second.owners.of(path).equals(List.of(firstMember, secondMember))) {
          return path;
        }
      }
    }
  }

  /** Runs both so that each asks the other node when the other one asks too. */
  private void atOnce(Callable<?> one, Callable<?> two) throws Exception {
    beforeAny = new CyclicBarrier(2, () -> beforeAny = null);
    ExecutorService threads = Executors.newFixedThreadPool(2);
    long since = System.nanoTime();
    try {
      Future<?> ofOne = threads.submit(one);
      Future<?> ofTwo = threads.submit(two);
      ofOne.get();
      ofTwo.get();
    } finally {
      threads.shutdownNow();
    }
    // No node had to probe whether the source answers.
    assertThat(Duration.ofNanos(System.nanoTime() - since)).isLessThan(SourceProbes.PATIENCE);
  }

  private static List<DirectoryEntry> list(TestNodes.Node node, long directory) throws Exception {
    List<DirectoryEntry> entries = new ArrayList<>();
    node.fs.list(directory, 0, entries::add);
    assertThat(entries).hasSize(1);
    return entries;
  }

  /** Files with that owner, in the root. */
  private List<String> filesOf(TestNodes.Node owner) throws Exception {
    List<String> files = new ArrayList<>();
    for (int i = 0; files.size() < READERS && i < CANDIDATES; i++) {
      String path = "f" + i;
      if (owner.owners.isOwn(FileName.of(path))) {
        files.add(path);
      }
    }
    return files;
  }

  @Test
  void read_whileTheWorkersOfBothNodesAskEachOtherForCopies_isAnswered() throws Exception {
    for (int i = 0; i < CANDIDATES; i++) {
      nodes.store.file("f" + i, i, 1000);
    }
    List<String> ofFirst = filesOf(first);
    List<String> ofSecond = filesOf(second);
    first.number(ofFirst.get(0));
    second.number(ofFirst.get(0));
    beforeCopies = new CyclicBarrier(2 * READERS);
    ExecutorService threads = Executors.newFixedThreadPool(2 * READERS);
    try {
      Map<String, Future<byte[]>> reads = new HashMap<>();
      for (int i = 0; i < READERS; i++) {
        String a = ofFirst.get(i);
        String b = ofSecond.get(i);
        reads.put(a, threads.submit(() -> second.read(a)));
        reads.put(b, threads.submit(() -> first.read(b)));
      }
      for (Map.Entry<String, Future<byte[]>> read : reads.entrySet()) {
        assertThat(read.getValue().get()).isEqualTo(nodes.expected().get(read.getKey()));
      }
    } finally {
      threads.shutdownNow();
    }
    assertThat(nodes.asked(SourceOperations::bytes)).isEqualTo(2L * READERS * 1000);
  }
}
