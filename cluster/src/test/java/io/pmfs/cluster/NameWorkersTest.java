package io.pmfs.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.stage.RemoteCopies;
import io.pmfs.tier.FakeStore;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Nodes that answer names with one worker each, over HTTP. */
@Timeout(value = 30, unit = TimeUnit.SECONDS)
final class NameWorkersTest {
  private static final int CANDIDATES = 64;

  private final HttpPeerClient http = new HttpPeerClient(null, null, FakeService.PATIENT);
  private final CyclicBarrier bothAsk = new CyclicBarrier(2);
  private volatile boolean waits;
  private final List<PeerServer> servers = new ArrayList<>();
  private TestNodes nodes;
  private TestNodes.Node first;
  private TestNodes.Node second;
  private Member firstMember;
  private Member secondMember;

  @TempDir Path directory;

  @BeforeEach
  void start() throws Exception {
    nodes = new TestNodes(directory, RemoteCopies.NEVER, 1, 1 << 30, direct -> waitingForBoth());
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
    servers.forEach(PeerServer::close);
    http.close();
    nodes.close();
  }

  private Member serve(TestNodes.Node node) throws Exception {
    PeerLimits usual = PeerLimits.DEFAULTS;
    PeerLimits oneWorker =
        new PeerLimits(
            1,
            1,
            usual.queued(),
            usual.connections(),
            usual.connectionsPerAddress(),
            usual.memoryMiB(),
            usual.request(),
            usual.idle(),
            usual.processing(),
            usual.writeStall());
    Member member = node.member;
    PeerServer server =
        new PeerServer(
            "127.0.0.1",
            0,
            null,
            null,
            member.instance(),
            oneWorker,
            node.service,
            NodeRequests.NONE);
    servers.add(server);
    return new Member(
        member.id(), member.instance(), member.name(), "127.0.0.1", server.address().getPort());
  }

  /** From then on a node asks the other one only when both are about to. */
  private PeerClient waitingForBoth() {
    return (PeerClient)
        Proxy.newProxyInstance(
            PeerClient.class.getClassLoader(),
            new Class<?>[] {PeerClient.class},
            (proxy, method, arguments) -> {
              if (waits) {
                bothAsk.await();
              }
              try {
                return method.invoke(http, arguments);
              } catch (InvocationTargetException e) {
                throw e.getCause();
              }
            });
  }

  /** A new directory of that owner's, in another one or in the root, with one file in it. */
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
                  batch.stream()
                      .map(SourceEntry::name)
                      .map(FileName::toString)
                      .forEach(names::add));
          return names;
        });
  }

  @Test
  void list_whileTheWorkersOfBothNodesAskEachOther_isAnsweredFromTheSource() throws Exception {
    FileName aboveFirsts = directoryOf(second, "a");
    FileName firsts = directoryOf(first, aboveFirsts + "/");
    FileName aboveSeconds = directoryOf(first, "b");
    FileName seconds = directoryOf(second, aboveSeconds + "/");
    // The root is known to both, so that the first that a worker asks for is what the other owns.
    first.number(aboveSeconds.toString());
    second.number(aboveFirsts.toString());
    List<FileName> listed = Collections.synchronizedList(new ArrayList<>());
    nodes.store.before(
        (operation, path, offset) -> {
          if (operation == FakeStore.Operation.LIST) {
            listed.add(path);
          }
        });
    waits = true;
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
}
