package io.pmfs.cluster.server;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.cluster.client.HttpPeerClient;
import io.pmfs.cluster.client.PeerTimeouts;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.FakeService;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.RequestSignature;
import io.pmfs.posix.Await;
import java.io.IOException;
import java.time.InstantSource;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Promise: requests of a writable mount that wait for the source delay no others. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class OutputRequestsTest {
  private static final byte[] KEY = FakeService.key();
  private static final long INSTANCE = 77;
  private static final byte[] NOTHING = {};

  private final ExecutorService programs = Executors.newCachedThreadPool();
  private final AtomicInteger waiting = new AtomicInteger();
  private final CountDownLatch source = new CountDownLatch(1);
  private final HttpPeerClient client =
      new HttpPeerClient(KEY, null, PeerTimeouts.DEFAULTS, peer -> false, null);
  private PeerServer server;
  private Member owner;

  @BeforeEach
  void start() throws IOException {
    serve(PeerLimits.DEFAULTS);
  }

  private void serve(PeerLimits limits) throws IOException {
    server =
        new PeerServer(
            "127.0.0.1",
            new RequestSignature(KEY, INSTANCE, InstantSource.system()),
            null,
            limits,
            new FakeService(),
            (method, path, body) -> new NodeRequests.Answer(200, body),
            (name, body) -> answer(name));
    owner = PeerHttpTest.member(server, INSTANCE);
  }

  private byte[] answer(String name) {
    if (name.equals("lookup")) {
      waiting.incrementAndGet();
      try {
        source.await();
      } catch (InterruptedException e) {
        throw new IllegalStateException(e);
      }
    }
    return name.getBytes(UTF_8);
  }

  @AfterEach
  void stop() {
    source.countDown();
    client.close();
    server.close();
    programs.shutdownNow();
  }

  private byte[] ask(String name) throws PeerException {
    return client.outputs(owner, name, NOTHING);
  }

  private void lookUpAndWait(int count) {
    askAndWait(count, NOTHING);
  }

  private void askAndWait(int count, byte[] body) {
    for (int i = 0; i < count; i++) {
      Future<byte[]> unused = programs.submit(() -> client.outputs(owner, "lookup", body));
    }
    Await.until("all wait", () -> waiting.get() == count);
  }

  @Test
  void requestsThatWait_asManyAsAMountHas_delayNoOthers() throws Exception {
    lookUpAndWait(128);
    assertThat(ask("interrupt")).asString(UTF_8).isEqualTo("interrupt");
    assertThat(ask("drainStatus")).asString(UTF_8).isEqualTo("drainStatus");
  }

  @Test
  void requestsThatWait_moreThanTheOwnerTakes_areRefusedButInterruptsAreNot() throws Exception {
    server.close();
    serve(withFewWorkers());
    lookUpAndWait(8);
    assertThatThrownBy(() -> ask("lookup"))
        .isInstanceOfSatisfying(
            PeerException.class, e -> assertThat(e.kind()).isEqualTo(PeerException.Kind.BUSY));
    assertThat(ask("interrupt")).asString(UTF_8).isEqualTo("interrupt");
    assertThat(client.call(owner, "GET", "node/status", "{}")).isEqualTo("{}");
  }

  private static PeerLimits withFewWorkers() {
    PeerLimits limits = PeerLimits.DEFAULTS;
    return new PeerLimits(
        2,
        limits.dataWorkers(),
        limits.queued(),
        limits.slowReaders(),
        limits.connections(),
        limits.connectionsPerAddress(),
        limits.memoryMiB(),
        limits.request(),
        limits.idle(),
        limits.processing(),
        limits.writeStall());
  }

  /** The owner keeps their content in memory. */
  @Test
  void largeRequestsThatWait_areFew_andDelayOnlySuchOnes() throws Exception {
    byte[] large = new byte[(64 << 10) + 1];
    askAndWait(4, large);
    assertThat(ask("attributes")).asString(UTF_8).isEqualTo("attributes");
    assertThatThrownBy(() -> client.outputs(owner, "write", large))
        .isInstanceOfSatisfying(
            PeerException.class, e -> assertThat(e.kind()).isEqualTo(PeerException.Kind.BUSY));
  }
}
