package io.pmfs.cluster.peers;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.handler.codec.http.HttpHeaders;
import io.pmfs.cluster.client.HttpPeerClient;
import io.pmfs.cluster.client.Patience;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.server.NodeRequests;
import io.pmfs.cluster.server.OutputRequests;
import io.pmfs.cluster.server.PeerHttpTest;
import io.pmfs.cluster.server.PeerLimits;
import io.pmfs.cluster.server.PeerServer;
import io.pmfs.metadata.FileName;
import java.io.IOException;
import java.time.Instant;
import java.time.InstantSource;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Nodes whose clocks differ. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
final class PeerClockTest {
  private static final byte[] KEY = "a secret of some length".getBytes(UTF_8);
  private static final long INSTANCE = 77;
  private static final String TARGET = "/v1/status/f";

  private final AtomicLong serversMillis = new AtomicLong();
  private final AtomicLong clientsMillis = new AtomicLong(1_800_000_000_000L);
  private final FakeService service = new FakeService();
  private PeerServer server;
  private HttpPeerClient client;
  private Member peer;

  @BeforeEach
  void start() throws IOException {
    service.put("f", new byte[10]);
    server =
        new PeerServer(
            "127.0.0.1",
            new RequestSignature(KEY, INSTANCE, clock(serversMillis)),
            null,
            PeerLimits.DEFAULTS,
            service,
            (method, path, body) -> new NodeRequests.Answer(200, body),
            OutputRequests.NONE);
    peer = PeerHttpTest.member(server, INSTANCE);
    client =
        new HttpPeerClient(
            KEY, null, FakeService.PATIENT, 4, member -> false, null, clock(clientsMillis));
  }

  private void setAhead(long millis) {
    serversMillis.set(clientsMillis.get() + millis);
  }

  private static InstantSource clock(AtomicLong millis) {
    return () -> Instant.ofEpochMilli(millis.get());
  }

  @AfterEach
  void stop() {
    client.close();
    server.close();
  }

  private void ask() throws PeerException {
    assertThat(client.status(peer, FileName.of("f"), Patience.endless()).attributes().size())
        .isEqualTo(10);
    assertThat(client.call(peer, "POST", "task", "some text")).isEqualTo("some text");
  }

  private long refusals() {
    return server.statistics().refused().values().stream().mapToLong(Long::longValue).sum();
  }

  @ParameterizedTest
  @ValueSource(longs = {-30_000, 30_000})
  void request_clocksDifferByHalfAMinute_isAnswered(long ahead) throws Exception {
    setAhead(ahead);
    ask();
    assertThat(refusals()).isZero();
  }

  @ParameterizedTest
  @ValueSource(longs = {-300_000, 300_000, 86_400_000})
  void request_clocksDifferByMinutes_isAnsweredAfterOneRefusal(long ahead) throws Exception {
    setAhead(ahead);
    ask();
    ask();
    assertThat(refusals()).isOne();
    assertThat(client.statistics(peer).failures()).isZero();
  }

  @Test
  void request_clockIsSetMeanwhile_isAnsweredAfterAnotherRefusal() throws Exception {
    setAhead(0);
    ask();
    setAhead(300_000);
    ask();
    setAhead(0);
    ask();
    assertThat(refusals()).isEqualTo(2);
  }

  @Test
  void request_otherSecret_isRefused() throws Exception {
    setAhead(300_000);
    try (HttpPeerClient stranger =
        new HttpPeerClient(
            "another secret".getBytes(UTF_8),
            null,
            FakeService.PATIENT,
            4,
            member -> false,
            null,
            clock(clientsMillis))) {
      assertThatThrownBy(() -> stranger.status(peer, FileName.of("f"), Patience.endless()))
          .isInstanceOf(PeerException.class)
          .hasMessageContaining("answered 401: the signature is wrong");
    }
  }

  private static String clockOf(RequestSignature server, HttpHeaders request) {
    try {
      server.verify("GET", TARGET, request);
      throw new AssertionError("not refused");
    } catch (Refusal e) {
      return String.valueOf(e.clock());
    }
  }

  @Test
  void learn_answerToAnotherRequestOrOfAnotherServer_isNotBelieved() {
    RequestSignature client = new RequestSignature(KEY, INSTANCE, clock(clientsMillis));
    setAhead(300_000);
    RequestSignature server = new RequestSignature(KEY, INSTANCE, clock(serversMillis));
    HttpHeaders headers = PeerFormat.headers();
    String nonce = client.sign("GET", TARGET, headers);
    String clock = clockOf(server, headers);
    String next = client.sign("GET", TARGET, PeerFormat.headers());

    assertThat(client.learn(clock, next)).as("a recorded answer").isFalse();
    assertThat(client.learn(clock.replace("time=1", "time=2"), nonce)).isFalse();
    assertThat(client.learn(null, nonce)).isFalse();
    assertThat(client.learn("time=1", nonce)).isFalse();
    RequestSignature other = new RequestSignature(KEY, INSTANCE + 1, clock(clientsMillis));
    assertThat(other.learn(clock, nonce)).as("another instance").isFalse();
    RequestSignature stranger =
        new RequestSignature("another secret".getBytes(UTF_8), INSTANCE, clock(clientsMillis));
    assertThat(stranger.learn(clock, nonce)).as("another secret").isFalse();
    assertThat(client.aheadMillis()).isZero();

    assertThat(client.learn(clock, nonce)).isTrue();
    assertThat(client.aheadMillis()).isEqualTo(300_000);
  }

  @Test
  void verify_requestOfALearnedClock_cannotBeRepeated() throws Exception {
    RequestSignature client = new RequestSignature(KEY, INSTANCE, clock(clientsMillis));
    setAhead(-300_000);
    RequestSignature server = new RequestSignature(KEY, INSTANCE, clock(serversMillis));
    HttpHeaders headers = PeerFormat.headers();
    assertThat(client.learn(clockOf(server, headers, client), lastNonce)).isTrue();
    HttpHeaders again = PeerFormat.headers();
    client.sign("GET", TARGET, again);
    server.verify("GET", TARGET, again);
    assertThatThrownBy(() -> server.verify("GET", TARGET, again))
        .isInstanceOf(Refusal.class)
        .hasMessageContaining("seen before");
    // The first one was recorded by somebody who waits until its time has come.
    serversMillis.addAndGet(300_000);
    assertThatThrownBy(() -> server.verify("GET", TARGET, headers))
        .isInstanceOf(Refusal.class)
        .hasMessageContaining("seen before");
  }

  private String lastNonce = "";

  private String clockOf(RequestSignature server, HttpHeaders headers, RequestSignature client) {
    lastNonce = client.sign("GET", TARGET, headers);
    return clockOf(server, headers);
  }
}
