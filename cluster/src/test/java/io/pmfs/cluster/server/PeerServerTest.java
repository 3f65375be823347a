package io.pmfs.cluster.server;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.netty.handler.codec.http.HttpHeaders;
import io.pmfs.cluster.peers.FakeService;
import io.pmfs.cluster.peers.Leaks;
import io.pmfs.cluster.peers.PeerFormat;
import io.pmfs.cluster.peers.RequestSignature;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.Await;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The server refuses whatever is wrong, and answers the next good request. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
final class PeerServerTest {
  private static final byte[] KEY = FakeService.key();
  private static final Pattern REQUEST_LINE = Pattern.compile("([A-Z]+) (\\S+) HTTP/1.1\r\n");
  private static final Pattern FIELD =
      Pattern.compile("(Range|Pmfs-Expected|Cache-Control):([ -~]*)");

  private static final long INSTANCE = 77;
  private static final int MEMORY_MIB = 16;
  private static final PeerLimits SHORT =
      new PeerLimits(
          2,
          2,
          4,
          4,
          40,
          20,
          16,
          Duration.ofMillis(800),
          Duration.ofSeconds(3),
          Duration.ofMillis(200),
          Duration.ofSeconds(1));

  private final FakeService service = new FakeService();
  private final AtomicLong now = new AtomicLong(1_700_000_000_000L);
  private final RequestSignature member = signature(KEY, INSTANCE, 0);
  private PeerServer server;

  @TempDir Path directory;

  @BeforeAll
  static void watch() {
    Leaks.watch();
  }

  @AfterAll
  static void assertNoLeaks() throws Exception {
    Leaks.assertNone();
  }

  @BeforeEach
  void start() throws Exception {
    service.put("f", "content".getBytes(ISO_8859_1));
    server = serve(SHORT);
  }

  private PeerServer serve(PeerLimits limits) throws IOException {
    return new PeerServer(
        "127.0.0.1",
        new RequestSignature(KEY, INSTANCE, () -> Instant.ofEpochMilli(now.get())),
        null,
        limits,
        service,
        NodeRequests.NONE,
        OutputRequests.NONE);
  }

  /** Replaces the server that was started; has other limits and long timeouts. */
  private void serveInstead(int dataWorkers, int queued) throws IOException {
    server.close();
    Duration minute = Duration.ofSeconds(60);
    server =
        serve(
            new PeerLimits(
                2,
                dataWorkers,
                queued,
                4,
                40,
                20,
                MEMORY_MIB,
                minute,
                minute,
                SHORT.processing(),
                minute));
  }

  @AfterEach
  void stop() {
    service.gate.release(1000);
    server.close();
  }

  private String get(String path) {
    return asMember("GET /v1/data/" + path + " HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
  }

  /** Signs a request with the secret; text without a request line is left unchanged. */
  private String asMember(String request) {
    Matcher line = REQUEST_LINE.matcher(request);
    if (!line.lookingAt()) {
      return request;
    }
    String[] parts = request.substring(line.end()).split("\r\n\r\n", 2);
    HttpHeaders headers = PeerFormat.headers();
    for (String header : parts[0].split("\r\n", -1)) {
      Matcher field = FIELD.matcher(header);
      if (field.matches()) {
        headers.set(field.group(1), field.group(2).strip());
      }
    }
    String hash = "";
    if (parts.length == 2 && !parts[1].isEmpty()) {
      headers.set(RequestSignature.BODY_HASH, RequestSignature.hash(parts[1].getBytes(ISO_8859_1)));
      hash = RequestSignature.BODY_HASH + ": " + headers.get(RequestSignature.BODY_HASH) + "\r\n";
    }
    member.sign(line.group(1), line.group(2), headers);
    return line.group()
        + hash
        + "Authorization: "
        + headers.get("Authorization")
        + "\r\n"
        + request.substring(line.end());
  }

  private void assertAnswersGoodOnes() throws IOException {
    try (RawConnection good = new RawConnection(server)) {
      for (int i = 0; i < 2; i++) {
        assertThat(good.send(get("f")).answer())
            .startsWith("HTTP/1.1 200")
            .endsWith("\r\n\r\ncontent");
      }
    }
  }

  /** Waits until earlier connections have ended and good requests are answered. */
  private void awaitGoodAnswers() throws InterruptedException {
    Await.until(
        "good requests are answered",
        () -> {
          try {
            assertAnswersGoodOnes();
            return true;
          } catch (IOException | AssertionError e) {
            return false;
          }
        });
  }

  private long refused(String reason) {
    return server.statistics().refused().getOrDefault(reason, 0L);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "400 | garbage",
        "400 | GET",
        "400 | GET /v1/data/f HTTP/9.x",
        "505 | GET /v1/data/f HTTP/1.0",
        "404 | GET / HTTP/1.1",
        "404 | GET /v1 HTTP/1.1",
        "404 | GET /v1/ HTTP/1.1",
        "404 | GET /v2/data/f HTTP/1.1",
        "404 | GET http://elsewhere/v1/data/f HTTP/1.1",
        "404 | GET /v1/data/missing HTTP/1.1",
        "405 | PUT /v1/data/f HTTP/1.1",
        "405 | POST /v1/data/f HTTP/1.1",
        "405 | HEAD /v1/status/f HTTP/1.1",
        "405 | DELETE /v1/directory/f HTTP/1.1",
        "403 | GET /v1/data/../f HTTP/1.1",
        "403 | GET /v1/data/%2e%2e/f HTTP/1.1",
        "403 | GET /v1/data/a/%2E HTTP/1.1",
        "403 | GET /v1/data//f HTTP/1.1",
        "403 | GET /v1/data/f/ HTTP/1.1",
        "403 | GET /v1/data/a%2ff HTTP/1.1",
        "403 | GET /v1/data/f%00 HTTP/1.1",
        "403 | GET /v1/directory/a/.. HTTP/1.1",
        "400 | GET /v1/data/%zz HTTP/1.1",
        "400 | GET /v1/data/%4 HTTP/1.1",
        "400 | GET /v1/data/% HTTP/1.1",
        "400 | GET /v1/data/f?x=1 HTTP/1.1",
        "409 | GET /v1/data/dir1 HTTP/1.1",
        "409 | GET /v1/data/ HTTP/1.1",
        "502 | GET /v1/data/broken HTTP/1.1",
        "500 | GET /v1/data/bug HTTP/1.1",
        "421 | GET /v1/data/foreign HTTP/1.1",
        "400 | GET /v1/data/f HTTP/1.1\\r\\nRange: lines=1-2",
        "400 | GET /v1/data/f HTTP/1.1\\r\\nRange: bytes=-",
        "400 | GET /v1/data/f HTTP/1.1\\r\\nRange: bytes=4-2",
        "400 | GET /v1/data/f HTTP/1.1\\r\\nRange: bytes=0-1,3-4",
        "416 | GET /v1/data/f HTTP/1.1\\r\\nRange: bytes=7-",
        "416 | GET /v1/data/f HTTP/1.1\\r\\nRange: bytes=-0",
        "416 | GET /v1/data/f HTTP/1.1\\r\\nRange: bytes=999999999999999999-",
        "400 | GET /v1/data/f HTTP/1.1\\r\\nPmfs-Expected: 7",
        "400 | GET /v1/data/f HTTP/1.1\\r\\nPmfs-Expected: 7.1.1000000000",
        "400 | GET /v1/data/f HTTP/1.1\\r\\nPmfs-Expected: -7.1.0",
        "412 | GET /v1/data/f HTTP/1.1\\r\\nPmfs-Expected: 7.1.0",
        "421 | GET /v1/data/f HTTP/1.1\\r\\nHost: node02",
        "421 | GET /v1/data/f HTTP/1.1\\r\\nHost: localhost:80",
        "421 | GET /v1/data/f HTTP/1.1\\r\\nHost: 127.0.0.1.example.org",
        "400 | GET /v1/data/f HTTP/1.1\\r\\nContent-Length: x",
        "400 | GET /v1/data/f HTTP/1.1\\r\\nContent-Length: -1",
        "400 | GET /v1/data/f HTTP/1.1\\r\\nContent-Length: 1\\r\\nContent-Length: 2",
        "413 | GET /v1/data/f HTTP/1.1\\r\\nContent-Length: 1",
        "413 | POST /v1/data HTTP/1.1\\r\\nContent-Length: 1100001",
        "413 | POST /v1/data HTTP/1.1\\r\\nContent-Length: 99999999999",
        "413 | POST /v1/node HTTP/1.1\\r\\nContent-Length: 1048577",
        "400 | POST /v1/data HTTP/1.1",
        "404 | GET /v1/task/1 HTTP/1.1",
      })
  void request_thatIsNone_isRefused(String status, String text) throws Exception {
    String request = asMember(text.replace("\\r\\n", "\r\n") + "\r\n\r\n");
    try (RawConnection connection = new RawConnection(server)) {
      assertThat(connection.send(request).answer()).startsWith("HTTP/1.1 " + status + " ");
    }
    assertThat(refused(status) + (text.contains("/task") ? 1 : 0)).isEqualTo(1);
    assertAnswersGoodOnes();
  }

  @Test
  void request_ofACopyThatIsNotThere_isRefused() throws Exception {
    service.put("uncopied", new byte[5]);
    try (RawConnection connection = new RawConnection(server)) {
      connection.send(
          asMember("GET /v1/data/uncopied HTTP/1.1\r\nCache-Control: only-if-cached\r\n\r\n"));
      assertThat(connection.answer()).startsWith("HTTP/1.1 504 ");
    }
  }

  @Test
  void request_thatIsTooLarge_isRefused() throws Exception {
    assertRefusedAtOnce("414", "GET /v1/data/" + "a".repeat(20_000) + " HTTP/1.1\r\n\r\n");
    assertRefusedAtOnce("414", "GET /v1/data/" + "b/".repeat(2100) + "c HTTP/1.1\r\n\r\n");
    assertRefusedAtOnce("431", "GET /v1/data/f HTTP/1.1\r\nX: " + "a".repeat(20_000) + "\r\n\r\n");
    assertRefusedAtOnce(
        "431", "GET /v1/data/f HTTP/1.1\r\n" + "X: aaaaaaaa\r\n".repeat(2000) + "\r\n");
    assertRefusedAtOnce(
        "413",
        "POST /v1/data HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
            + ("8000\r\n" + "x".repeat(0x8000) + "\r\n").repeat(40));
  }

  private void assertRefusedAtOnce(String status, String request) throws IOException {
    try (RawConnection connection = new RawConnection(server)) {
      try {
        connection.send(asMember(request));
      } catch (IOException e) {
        // The server need not read all of it.
      }
      assertThat(connection.answer()).startsWith("HTTP/1.1 " + status + " ");
    }
    assertAnswersGoodOnes();
  }

  private static String batch(ByteBuf body) {
    String text = new String(ByteBufUtil.getBytes(body), ISO_8859_1);
    return "POST /v1/data HTTP/1.1\r\nContent-Length: " + text.length() + "\r\n\r\n" + text;
  }

  @Test
  void batch_thatIsNone_isRefused() throws Exception {
    SourceVersion large = new SourceVersion(5 << 20, Instant.EPOCH);
    SourceVersion small = new SourceVersion(5, Instant.EPOCH);
    assertBatch("413", List.of(item("a", large)));
    SourceVersion block = new SourceVersion(1 << 20, Instant.EPOCH);
    assertBatch("413", Collections.nCopies(9, item("a", block)));
    assertBatch("403", List.of(item("a", small), item("../b", small)));
    assertBatch("403", List.of(item("a\0", small)));
    assertRefusedAtOnce("400", batch(Unpooled.buffer().writeShort(300)));
    assertRefusedAtOnce("400", batch(Unpooled.buffer().writeShort(1).writeByte(9)));
    assertRefusedAtOnce("400", batch(Unpooled.buffer().writeShort(0).writeByte(9)));
  }

  private static PeerFormat.BatchItem item(String path, SourceVersion version) {
    return new PeerFormat.BatchItem(FileName.of(path), version, false);
  }

  private void assertBatch(String status, List<PeerFormat.BatchItem> items) throws IOException {
    ByteBuf body = Unpooled.buffer();
    PeerFormat.putBatch(body, items);
    assertRefusedAtOnce(status, batch(body));
  }

  @ParameterizedTest
  @ValueSource(strings = {"exhausting", "overflowing"})
  void batch_inWhichAFileMeetsAnError_refusesThatOne(String path) throws Exception {
    SourceVersion version = FakeService.version("content".getBytes(ISO_8859_1));
    ByteBuf body = Unpooled.buffer();
    PeerFormat.putBatch(body, List.of(item("f", version), item(path, version), item("f", version)));
    try (RawConnection connection = new RawConnection(server)) {
      connection.send(asMember(batch(body).replace(" HTTP/1.1", " HTTP/1.1\r\nConnection: close")));
      assertThat(connection.rest())
          .startsWith("HTTP/1.1 200 ")
          .containsPattern("(?s)content.*an internal error.*content");
    }
  }

  @Test
  void request_thatMeetsAnError_isAnswered() throws Exception {
    String request = asMember("GET /v1/status/overflowing HTTP/1.1\r\n\r\n");
    try (RawConnection connection = new RawConnection(server)) {
      assertThat(connection.send(request).answer()).startsWith("HTTP/1.1 500 ");
    }
  }

  /** Files read ahead of one that the source does not give are kept until their turn. */
  @Test
  void batches_thatWaitForTheirFirstFile_readAheadWithinTheirMemory() throws Exception {
    serveInstead(32, 100);
    byte[] large = new byte[128 << 10];
    // When a batch takes long, other workers help with it.
    service.put("slow", large);
    service.slow = "slow";
    service.put("held", large);
    service.held = "held";
    List<PeerFormat.BatchItem> items = new ArrayList<>();
    items.add(item("slow", FakeService.version(large)));
    items.add(item("held", FakeService.version(large)));
    for (int i = 2; i < 60; i++) {
      service.put("f" + i, large);
      items.add(item("f" + i, FakeService.version(large)));
    }
    ByteBuf body = Unpooled.buffer();
    PeerFormat.putBatch(body, items);
    int batches = 4;
    List<RawConnection> connections = new ArrayList<>();
    try {
      for (int i = 0; i < batches; i++) {
        RawConnection one = new RawConnection(server);
        connections.add(one);
        one.send(asMember(batch(body)));
      }
      Await.until("files are read", () -> service.reads.get() > 60);
      int before;
      do {
        before = service.reads.get();
        Thread.sleep(500);
      } while (service.reads.get() > before);

      assertThat((long) before * large.length).isBetween(8L << 20, (MEMORY_MIB + 1L) << 20);
      service.gate.release(batches);
      for (RawConnection one : connections) {
        assertThat(one.socket.getInputStream().read()).isEqualTo('H');
        one.drain(items.size() * large.length);
      }
      Await.until("files are read", () -> service.reads.get() == batches * items.size());
      Await.until("requests begin or end", () -> server.statistics().active() == 0);
    } finally {
      for (RawConnection one : connections) {
        one.close();
      }
    }
  }

  /** A request signed by the client's code, and perhaps changed afterwards. */
  private static String signed(
      RequestSignature signature, String method, String target, String... headers) {
    HttpHeaders all = PeerFormat.headers();
    for (String header : headers) {
      String[] parts = header.split(": ", 2);
      all.set(parts[0], parts[1]);
    }
    signature.sign(method, target, all);
    StringBuilder text = new StringBuilder(method + " " + target + " HTTP/1.1\r\n");
    all.forEach(header -> text.append(header.getKey() + ": " + header.getValue() + "\r\n"));
    return text + "\r\n";
  }

  private RequestSignature signature(byte[] key, long instance, long skewMillis) {
    return new RequestSignature(key, instance, () -> Instant.ofEpochMilli(now.get() + skewMillis));
  }

  private void assertUnauthorized(String request, String why) throws IOException {
    try (RawConnection connection = new RawConnection(server)) {
      assertThat(connection.send(request).answer())
          .startsWith("HTTP/1.1 401 ")
          .containsPattern(why);
    }
  }

  @Test
  void signatures_areTheServersOwnAndOfNow_once() throws Exception {
    RequestSignature signature = signature(KEY, INSTANCE, 0);
    String target = "/v1/data/f";
    assertUnauthorized("GET /v1/data/f HTTP/1.1\r\n\r\n", "not signed");
    assertUnauthorized("GET /v1/data/f HTTP/1.1\r\nAuthorization: Basic eA==\r\n\r\n", "malformed");
    assertUnauthorized(signed(signature(KEY, 78, 0), "GET", target), "wrong");
    assertUnauthorized(signed(signature(new byte[] {9}, INSTANCE, 0), "GET", target), "wrong");
    assertUnauthorized(
        signed(signature(KEY, INSTANCE, 61_000), "GET", target), "61 s ahead of this server");
    assertUnauthorized(
        signed(signature(KEY, INSTANCE, -61_000), "GET", target), "61 s behind this server");
    for (String[] change :
        new String[][] {
          {"data/f", "data/g"},
          {"bytes=0-1", "bytes=0-2"},
          {"7.1.0", "7.1.1"},
          {"only-if-cached", "no-cache"}
        }) {
      String request =
          signed(
              signature,
              "GET",
              target,
              "Range: bytes=0-1",
              "Pmfs-Expected: 7.1.0",
              "Cache-Control: only-if-cached");
      assertThat(request).contains(change[0]);
      assertUnauthorized(request.replaceFirst(change[0], change[1]), "wrong");
    }
    // The answer to HEAD has no line with the reason.
    assertUnauthorized(signed(signature, "GET", target).replaceFirst("GET", "HEAD"), "");
    String good = signed(signature, "GET", target);
    try (RawConnection connection = new RawConnection(server)) {
      assertThat(connection.send(good).answer()).startsWith("HTTP/1.1 200 ");
    }
    assertUnauthorized(good, "seen before");
    String late = signed(signature, "GET", target);
    now.addAndGet(61_000);
    assertUnauthorized(late, "behind");
    assertUnauthorized(
        signed(
                signature,
                "POST",
                "/v1/node",
                "Pmfs-Body-Sha256: " + RequestSignature.hash(new byte[] {'a'}),
                "Content-Length: 1")
            + "b",
        "not the one signed");
    assertThat(service.reads.get()).isEqualTo(1);
  }

  @Test
  void aWaitingPeer_isToldSo() throws Exception {
    service.held = "f";
    try (RawConnection connection = new RawConnection(server)) {
      connection.send(get("f"));
      assertThat(connection.answer()).startsWith("HTTP/1.1 102 ");
      assertThat(connection.answer()).startsWith("HTTP/1.1 102 ");
      service.gate.release(2);
      String answer = connection.answer();
      while (answer.startsWith("HTTP/1.1 102 ")) {
        answer = connection.answer();
      }
      assertThat(answer).startsWith("HTTP/1.1 200 ").endsWith("content");
    }
  }

  @Test
  void namesAreAnswered_whileAllDataWaits_andWhoIsTooManyIsRefused() throws Exception {
    service.put("held", new byte[1]);
    service.held = "held";
    List<RawConnection> connections = new ArrayList<>();
    try {
      for (int i = 0; i < 7; i++) {
        RawConnection connection = new RawConnection(server);
        connections.add(connection);
        connection.send(get("held"));
        int sent = i + 1;
        Await.until("all are served", () -> server.statistics().requests() == sent);
      }
      // Two requests are being answered, four wait.
      assertThat(connections.get(6).answer()).startsWith("HTTP/1.1 503 ");
      try (RawConnection names = new RawConnection(server)) {
        assertThat(names.send(asMember("GET /v1/status/f HTTP/1.1\r\n\r\n")).answer())
            .startsWith("HTTP/1.1 200 ");
      }
      service.gate.release(12);
      for (RawConnection connection : connections.subList(0, 6)) {
        String answer = connection.answer();
        while (answer.startsWith("HTTP/1.1 102 ")) {
          answer = connection.answer();
        }
        assertThat(answer).startsWith("HTTP/1.1 200 ");
      }
    } finally {
      for (RawConnection connection : connections) {
        connection.close();
      }
    }
    assertAnswersGoodOnes();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "G",
        "GET /v1/data/f HTTP/1.1\r\nX: ",
        "POST /v1/data HTTP/1.1\r\nContent-Length: 100\r\n\r\nabc",
        "POST /v1/data HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"
      })
  void aRequestThatNeverEnds_endsTheConnection(String beginning) throws Exception {
    try (RawConnection connection = new RawConnection(server)) {
      connection.send(asMember(beginning));
      String rest = connection.rest();
      assertThat(rest).matches("(?s)|HTTP/1.1 408 .*");
    }
    assertThat(refused("slow")).isEqualTo(beginning.isEmpty() ? 0 : 1);
    assertAnswersGoodOnes();
  }

  @Test
  void aRequestThatTrickles_endsTheConnection() throws Exception {
    try (RawConnection connection = new RawConnection(server)) {
      connection.send("GET /v1/data/f HTTP/1.1\r\n");
      try {
        for (int i = 0; i < 1000; i++) {
          connection.send("X");
          Thread.sleep(20);
        }
        throw new AssertionError("the server never closes the connection");
      } catch (IOException e) {
        assertThat(refused("slow")).isEqualTo(1);
      }
    }
    assertAnswersGoodOnes();
  }

  private void putLarge(boolean onDisk) throws IOException {
    byte[] large = new byte[60 << 20];
    if (onDisk) {
      FileChannel file =
          FileChannel.open(
              directory.resolve("large"),
              StandardOpenOption.CREATE,
              StandardOpenOption.READ,
              StandardOpenOption.WRITE);
      service.put("large", large, file, true);
    } else {
      service.put("large", large);
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void aPeerThatDoesNotRead_isLeft(boolean onDisk) throws Exception {
    putLarge(onDisk);
    try (RawConnection connection = new RawConnection(server.address(), 4096)) {
      connection.send(get("large"));
      Await.until("refused", () -> refused("stalled") == 1);
      Await.until("requests begin or end", () -> server.statistics().active() == 0);
    }
    assertAnswersGoodOnes();
  }

  /** More slow readers than workers; all of them still wait when the others are answered. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void othersAreAnswered_whilePeersDoNotRead(boolean onDisk) throws Exception {
    serveInstead(2, 4);
    putLarge(onDisk);
    List<RawConnection> slow = new ArrayList<>();
    try {
      for (int i = 0; i < 4; i++) {
        RawConnection one = new RawConnection(server.address(), 4096);
        slow.add(one);
        one.send(get("large"));
        assertThat(one.socket.getInputStream().read()).isEqualTo('H');
      }
      Thread.sleep(500); // until no buffer on the way has room
      assertAnswersGoodOnes();
      // The reader may have the end of an answer before the server knows that it sent it.
      Await.until("requests begin or end", () -> server.statistics().active() == 4);
    } finally {
      for (RawConnection one : slow) {
        one.close();
      }
    }
    Await.until("requests begin or end", () -> server.statistics().active() == 0);
  }

  @Test
  void aPeerThatLeaves_leavesNothing() throws Exception {
    byte[] large = new byte[60 << 20];
    service.put("large", large);
    service.put("held", new byte[1]);
    service.held = "held";
    for (int i = 0; i < 10; i++) {
      try (RawConnection connection = new RawConnection(server)) {
        connection.send(get(i % 2 == 0 ? "large" : "held"));
        assertThat(connection.socket.getInputStream().read()).isEqualTo('H');
      }
    }
    service.gate.release(100);
    Await.until("requests begin or end", () -> server.statistics().active() == 0);
    awaitGoodAnswers();
  }

  @Test
  void requestsThatDoNotWaitForAnswers_areAnsweredOneAfterTheOther() throws Exception {
    service.put("held", new byte[1]);
    service.held = "held";
    try (RawConnection connection = new RawConnection(server)) {
      connection.send(get("held") + get("f") + get("none"));
      Await.until("requests begin or end", () -> server.statistics().active() == 1);
      service.gate.release(100);
      assertThat(lastAnswer(connection)).startsWith("HTTP/1.1 200");
      assertThat(lastAnswer(connection)).startsWith("HTTP/1.1 200");
      assertThat(lastAnswer(connection)).startsWith("HTTP/1.1 404");
    }
    assertAnswersGoodOnes();
  }

  private static String lastAnswer(RawConnection connection) throws IOException {
    String answer = connection.answer();
    while (answer.startsWith("HTTP/1.1 102")) {
      answer = connection.answer();
    }
    return answer;
  }

  @Test
  void requestsOfAPeerThatLeavesInTheMiddle_areDropped() throws Exception {
    service.put("held", new byte[1]);
    service.held = "held";
    try (RawConnection connection = new RawConnection(server)) {
      StringBuilder requests = new StringBuilder();
      for (int i = 0; i < 50; i++) {
        requests.append(get("held")).append(get("f"));
      }
      connection.send(requests.toString());
      Await.until("requests begin or end", () -> server.statistics().active() == 1);
    }
    service.gate.release(1000);
    Await.until("requests begin or end", () -> server.statistics().active() == 0);
    awaitGoodAnswers();
  }

  @Test
  void connectionsBeyondTheLimit_areClosed() throws Exception {
    List<RawConnection> connections = new ArrayList<>();
    try {
      for (int i = 0; i < 30; i++) {
        connections.add(new RawConnection(server));
      }
      Await.until("refused", () -> refused("connections") == 10);
      assertThat(connections.get(0).send(get("f")).answer()).startsWith("HTTP/1.1 200");
    } finally {
      for (RawConnection connection : connections) {
        connection.close();
      }
    }
    awaitGoodAnswers();
  }

  /** Random bytes, and requests of members with a few bytes wrong or missing. */
  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3})
  void fuzzedRequests_changeNothing(long seed) throws Exception {
    Random random = new Random(seed);
    String[] good = {
      "GET /v1/data/f HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
      "GET /v1/directory/dir3 HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: bytes=0-3\r\n\r\n",
      batch(
          Unpooled.buffer()
              .writeShort(1)
              .writeByte(0)
              .writeLong(7)
              .writeLong(1_700_000_000)
              .writeInt(123_456_789)
              .writeShort(1)
              .writeByte('f'))
    };
    for (int i = 0; i < 300; i++) {
      byte[] bytes;
      if (i % 3 == 0) {
        bytes = new byte[random.nextInt(3000)];
        random.nextBytes(bytes);
      } else {
        bytes = good[random.nextInt(good.length)].getBytes(ISO_8859_1);
        for (int change = random.nextInt(4); change >= 0; change--) {
          bytes[random.nextInt(bytes.length)] = (byte) random.nextInt(256);
        }
        bytes = Arrays.copyOf(bytes, random.nextInt(bytes.length + 1));
        // Signed after the change, so that it also reaches the code behind the signature check.
        bytes = asMember(new String(bytes, ISO_8859_1)).getBytes(ISO_8859_1);
      }
      try (RawConnection connection = new RawConnection(server)) {
        connection.send(bytes);
        if (random.nextBoolean()) {
          connection.socket.shutdownOutput();
        }
      } catch (IOException e) {
        // It may close the connection while more is sent, or when there are too many.
      }
    }
    Await.until("requests begin or end", () -> server.statistics().active() == 0);
    awaitGoodAnswers();
  }

  /** A node of a large job has some connections to each other node, most of them idle. */
  @Test
  void connections_thatAreIdle_costHardlyAnyTime() throws Exception {
    server.close();
    server = serve(PeerLimits.DEFAULTS);
    List<RawConnection> connections = new ArrayList<>();
    try {
      for (int i = 0; i < 200; i++) {
        connections.add(new RawConnection(server));
      }
      assertAnswersGoodOnes();
      long before = eventLoopNanos();
      Thread.sleep(3_000);
      assertThat(Duration.ofNanos(eventLoopNanos() - before))
          .as("CPU time of 3 s")
          .isLessThan(Duration.ofMillis(100));
    } finally {
      for (RawConnection connection : connections) {
        connection.close();
      }
    }
  }

  private static long eventLoopNanos() {
    ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    long sum = 0;
    for (ThreadInfo thread : threads.getThreadInfo(threads.getAllThreadIds())) {
      if (thread != null && thread.getThreadName().startsWith("pmfs-peer-server")) {
        sum += Math.max(0, threads.getThreadCpuTime(thread.getThreadId()));
      }
    }
    return sum;
  }
}
