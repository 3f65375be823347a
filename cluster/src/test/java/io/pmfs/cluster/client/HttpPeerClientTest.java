package io.pmfs.cluster.client;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.FakeService;
import io.pmfs.cluster.peers.HeldBlocks;
import io.pmfs.cluster.peers.Leaks;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.PeerFormat;
import io.pmfs.cluster.peers.PeerFrames;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.Await;
import io.pmfs.stage.formats.Blocks;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Whatever a peer answers, the client reports it in time, and passes no wrong byte on. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
final class HttpPeerClientTest {
  private static final PeerTimeouts SHORT =
      new PeerTimeouts(
          Duration.ofMillis(500),
          Duration.ofMillis(400),
          Duration.ofMillis(400),
          Duration.ofMillis(1500));
  private static final byte[] CONTENT = "some content".getBytes(ISO_8859_1);

  /** What the peer does with a connection. */
  private interface Behaviour {
    void serve(InputStream in, OutputStream out) throws Exception;
  }

  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final AtomicInteger connections = new AtomicInteger();
  private ServerSocket socket;
  private volatile boolean isGivenUp;
  private volatile Behaviour behaviour = (in, out) -> {};
  private HttpPeerClient client;
  private Member peer;

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
    socket = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    peer = new Member(new UUID(1, 2), 3, "hostile", "127.0.0.1", socket.getLocalPort());
    client = new HttpPeerClient(FakeService.key(), null, SHORT, 2, asked -> isGivenUp, null);
    threads.execute(
        () -> {
          while (true) {
            try {
              Socket accepted = socket.accept();
              connections.incrementAndGet();
              threads.execute(() -> serve(accepted));
            } catch (IOException e) {
              return;
            }
          }
        });
  }

  private void serve(Socket accepted) {
    try (accepted) {
      behaviour.serve(accepted.getInputStream(), accepted.getOutputStream());
    } catch (Exception e) {
      // The client has left.
    }
  }

  @AfterEach
  void stop() throws Exception {
    client.close();
    socket.close();
    threads.shutdownNow();
  }

  /** Reads a request's head, and a body of the size that it announces. */
  private static String request(InputStream in) throws IOException {
    StringBuilder head = new StringBuilder();
    while (head.indexOf("\r\n\r\n") < 0) {
      int c = in.read();
      if (c < 0) {
        throw new IOException("closed");
      }
      head.append((char) c);
    }
    int at = head.indexOf("content-length: ");
    if (at >= 0) {
      in.readNBytes(Integer.parseInt(head.substring(at + 16, head.indexOf("\r\n", at))));
    }
    return head.toString();
  }

  private static String headers(byte[] content) {
    return "Content-Length: "
        + content.length
        + "\r\nPmfs-Status: "
        + PeerFormat.statusHeader(FakeService.statusOf(FakeService.REGULAR, content.length))
        + "\r\nPmfs-Checksum: body "
        + PeerFormat.hex(Blocks.checksum(ByteBuffer.wrap(content)))
        + "\r\n\r\n";
  }

  private static String good() {
    return "HTTP/1.1 200 OK\r\n" + headers(CONTENT) + new String(CONTENT, ISO_8859_1);
  }

  private void answer(String text) {
    behaviour =
        (in, out) -> {
          while (true) {
            request(in);
            out.write(text.getBytes(ISO_8859_1));
            out.flush();
          }
        };
  }

  private byte[] read() throws PeerException {
    ByteBuffer destination = ByteBuffer.allocateDirect(CONTENT.length);
    client.fetch(
        peer,
        FileName.of("f"),
        FakeService.version(CONTENT),
        0,
        destination,
        false,
        Patience.endless());
    byte[] bytes = new byte[CONTENT.length];
    destination.flip().get(bytes);
    return bytes;
  }

  private PeerException failure() {
    return catchThrowableOfType(PeerException.class, this::read);
  }

  private void assertFails(PeerException.Kind kind) {
    PeerException failure = failure();
    assertThat(failure).isNotNull();
    assertThat(failure.kind()).as(failure.getMessage()).isEqualTo(kind);
  }

  @Test
  void aGoodAnswer_isTaken() throws Exception {
    answer(good());
    for (int i = 0; i < 3; i++) {
      assertThat(read()).isEqualTo(CONTENT);
    }
    assertThat(connections.get()).isEqualTo(1);
  }

  @Test
  void nobodyThere_isUnreachable() throws Exception {
    socket.close();
    assertFails(PeerException.Kind.UNREACHABLE);
  }

  @Test
  void aHostThatIsNone_isUnreachable() {
    peer = new Member(new UUID(1, 2), 3, "none", "256.0.0.1", 1);
    assertFails(PeerException.Kind.UNREACHABLE);
  }

  @Test
  void silence_isUnreachable() {
    behaviour = (in, out) -> in.transferTo(OutputStream.nullOutputStream());
    assertFails(PeerException.Kind.UNREACHABLE);
  }

  @Test
  void aConnectionThatIsClosed_isUnreachable() {
    behaviour = (in, out) -> request(in);
    assertFails(PeerException.Kind.UNREACHABLE);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "SSH-2.0-OpenSSH_9.2\r\n",
        "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\n: no name\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 200 OK\r\n\r\nsome content",
        "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nsome content",
        "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nsome content",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nc\r\nsome content\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzzzz\r\n",
      })
  void whatIsNoAnswer_isCorrupt(String text) {
    answer(text);
    assertFails(PeerException.Kind.CORRUPT);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "body :body 0",
        "body :body",
        "body :body zzzzzzzz,",
        "body :",
        "Pmfs-Status: :Pmfs-Status: AAAA",
        "Pmfs-Status: :X: ",
        "Pmfs-Status: :Pmfs-Holders: 1-2-3-4-5,x\r\nPmfs-Status: ",
        "Content-Length: 12:Content-Length: 11",
        "Content-Length: 12:Content-Length: 13",
        "200 OK:206 Partial Content",
        "some content:some c0ntent"
      })
  void anAnswerThatIsNotRight_isCorrupt(String change) {
    String[] parts = change.split(":(?=[^ ]|$)", 2);
    answer(good().replace(parts[0], parts.length < 2 ? "" : parts[1]));
    assertFails(PeerException.Kind.CORRUPT);
  }

  @Test
  void anotherVersion_isCorrupt() {
    byte[] other = "some content!".getBytes(ISO_8859_1);
    answer(
        "HTTP/1.1 200 OK\r\n"
            + headers(other).replace("Content-Length: 13", "Content-Length: 12")
            + "some content");
    assertFails(PeerException.Kind.CORRUPT);
  }

  @Test
  void anotherRange_isCorrupt() {
    answer(
        "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-11/200000\r\n" + headers(CONTENT));
    PeerException failure =
        catchThrowableOfType(
            PeerException.class,
            () ->
                client.fetch(
                    peer,
                    FileName.of("f"),
                    FakeService.version(new byte[200_000]),
                    1,
                    ByteBuffer.allocateDirect(12),
                    false,
                    Patience.endless()));
    assertThat(failure.kind()).isEqualTo(PeerException.Kind.CORRUPT);
  }

  @Test
  void endlessHeaders_areCorrupt() {
    behaviour =
        (in, out) -> {
          request(in);
          out.write("HTTP/1.1 200 OK\r\n".getBytes(ISO_8859_1));
          while (true) {
            out.write("X: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n".getBytes(ISO_8859_1));
          }
        };
    assertFails(PeerException.Kind.CORRUPT);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 5, 40, 90})
  void anAnswerThatStops_isUnreachable(int cut) {
    behaviour =
        (in, out) -> {
          request(in);
          out.write(good().substring(0, good().length() - 1 - cut).getBytes(ISO_8859_1));
          in.transferTo(OutputStream.nullOutputStream());
        };
    assertFails(PeerException.Kind.UNREACHABLE);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 5, 40, 90})
  void anAnswerThatIsCut_isUnreachable(int cut) {
    behaviour =
        (in, out) -> {
          request(in);
          out.write(good().substring(0, good().length() - 1 - cut).getBytes(ISO_8859_1));
        };
    assertFails(PeerException.Kind.UNREACHABLE);
  }

  @Test
  void anAnswerThatTrickles_isUnreachable() {
    behaviour =
        (in, out) -> {
          request(in);
          for (char c : good().toCharArray()) {
            out.write(c);
            Thread.sleep(50);
          }
        };
    assertFails(PeerException.Kind.UNREACHABLE);
  }

  /** Longer than any time limit. */
  @Test
  void processing_isWaitedFor() throws Exception {
    behaviour =
        (in, out) -> {
          request(in);
          for (int i = 0; i < 100; i++) {
            out.write("HTTP/1.1 102 Processing\r\n\r\n".getBytes(ISO_8859_1));
            Thread.sleep(20);
          }
          out.write(good().getBytes(ISO_8859_1));
        };
    assertThat(read()).isEqualTo(CONTENT);
  }

  @Test
  void processing_ofAPeerThatOthersGaveUp_isAFailureOfItsSource() {
    behaviour =
        (in, out) -> {
          request(in);
          while (true) {
            out.write("HTTP/1.1 102 Processing\r\n\r\n".getBytes(ISO_8859_1));
            isGivenUp = true;
            Thread.sleep(20);
          }
        };
    assertFails(PeerException.Kind.FAILED);
  }

  /** Time counts until the peer says that it waits, and again when it stops saying so. */
  @Test
  void silence_afterProcessing_isUnreachable() {
    behaviour =
        (in, out) -> {
          request(in);
          out.write("HTTP/1.1 102 Processing\r\n\r\n".getBytes(ISO_8859_1));
          in.transferTo(OutputStream.nullOutputStream());
        };
    assertFails(PeerException.Kind.UNREACHABLE);
  }

  /** What needs no source has no reason to wait. */
  @Test
  void processing_ofAQuestionAboutCopies_isUnreachable() {
    behaviour =
        (in, out) -> {
          request(in);
          while (true) {
            out.write("HTTP/1.1 102 Processing\r\n\r\n".getBytes(ISO_8859_1));
            Thread.sleep(20);
          }
        };
    assertIsSoonUnreachable(this::askForBlocks);
    assertIsSoonUnreachable(this::readCopy);
  }

  @Test
  void aHeadThatTricklesAfterAQuestionAboutCopies_isUnreachable() {
    behaviour =
        (in, out) -> {
          request(in);
          while (true) {
            out.write("HTTP/1.1 200 OK\r\nx: ".getBytes(ISO_8859_1));
            for (int i = 0; i < 400; i++) {
              out.write('a');
              Thread.sleep(20);
            }
          }
        };
    assertIsSoonUnreachable(this::askForBlocks);
    assertIsSoonUnreachable(this::readCopy);
  }

  private interface Question {
    void ask(HttpPeerClient asking) throws PeerException;
  }

  private void askForBlocks(HttpPeerClient asking) throws PeerException {
    SourceVersion version = FakeService.version(CONTENT);
    asking.blocks(peer, FileName.of("f"), version, HeldBlocks.Wanted.NOTHING, Patience.endless());
  }

  private void readCopy(HttpPeerClient asking) throws PeerException {
    ByteBuffer destination = ByteBuffer.allocateDirect(CONTENT.length);
    SourceVersion version = FakeService.version(CONTENT);
    asking.fetch(peer, FileName.of("f"), version, 0, destination, true, Patience.endless());
  }

  /** Soon, although a whole answer would have a minute. */
  private void assertIsSoonUnreachable(Question question) {
    PeerTimeouts timeouts =
        new PeerTimeouts(
            Duration.ofSeconds(10),
            Duration.ofMillis(400),
            Duration.ofMillis(400),
            Duration.ofMinutes(1));
    try (HttpPeerClient asking =
        new HttpPeerClient(FakeService.key(), null, timeouts, 2, asked -> false, null)) {
      long since = System.nanoTime();
      PeerException failure = catchThrowableOfType(PeerException.class, () -> question.ask(asking));
      assertThat(failure.kind()).isEqualTo(PeerException.Kind.UNREACHABLE);
      assertThat(Duration.ofNanos(System.nanoTime() - since)).isLessThan(Duration.ofSeconds(10));
    }
  }

  /** No byte is late, and the whole would be in time. */
  @Test
  void aRangeThatComesTooSlowly_isUnreachable() {
    byte[] large = new byte[1 << 20];
    HttpPeerClient patient =
        new HttpPeerClient(FakeService.key(), null, FakeService.PATIENT, 2, peer -> false, null);
    behaviour =
        (in, out) -> {
          request(in);
          out.write(("HTTP/1.1 206 OK\r\n" + rangeHeaders(large)).getBytes(ISO_8859_1));
          for (int i = 0; i < large.length; i += 4096) {
            out.write(large, i, 4096);
            out.flush();
            Thread.sleep(100);
          }
        };
    try (patient) {
      long since = System.nanoTime();
      PeerException failure =
          catchThrowableOfType(
              PeerException.class,
              () ->
                  patient.fetch(
                      peer,
                      FileName.of("f"),
                      FakeService.version(large),
                      0,
                      ByteBuffer.allocateDirect(large.length),
                      false,
                      Patience.endless()));
      assertThat(failure).hasMessageContaining("too slowly");
      assertThat(failure.kind()).isEqualTo(PeerException.Kind.UNREACHABLE);
      assertThat(Duration.ofNanos(System.nanoTime() - since)).isLessThan(Duration.ofSeconds(15));
    }
  }

  private static String rangeHeaders(byte[] content) {
    return "Content-Range: bytes 0-%d/%d\r\n".formatted(content.length - 1, content.length)
        + headers(content);
  }

  @Test
  void whatFollowsAnAnswer_isNotTakenForTheNext() throws Exception {
    answer(good() + "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\nevil content");
    for (int i = 0; i < 20; i++) {
      try {
        assertThat(read()).isEqualTo(CONTENT);
      } catch (PeerException e) {
        assertThat(e.kind()).isNotEqualTo(PeerException.Kind.FAILED);
      }
    }
  }

  @Test
  void aConnectionThatWasClosedMeanwhile_isReplaced() throws Exception {
    behaviour =
        (in, out) -> {
          request(in);
          out.write(good().getBytes(ISO_8859_1));
          if (connections.get() > 1) {
            request(in);
          } else {
            // Takes the next request, then disconnects.
            in.read();
          }
        };
    assertThat(read()).isEqualTo(CONTENT);
    assertThat(read()).isEqualTo(CONTENT);
    assertThat(connections.get()).isEqualTo(2);
  }

  @Test
  void whatComesTooLate_changesNothing() throws Exception {
    behaviour =
        (in, out) -> {
          request(in);
          Thread.sleep(700);
          out.write(good().getBytes(ISO_8859_1));
        };
    ByteBuffer destination = ByteBuffer.allocateDirect(CONTENT.length);
    PeerException failure =
        catchThrowableOfType(
            PeerException.class,
            () ->
                client.fetch(
                    peer,
                    FileName.of("f"),
                    FakeService.version(CONTENT),
                    0,
                    destination,
                    false,
                    Patience.endless()));
    assertThat(failure.kind()).isEqualTo(PeerException.Kind.UNREACHABLE);
    assertThat(destination.remaining()).isEqualTo(CONTENT.length);
    Thread.sleep(600);
    assertThat(destination.duplicate().compareTo(ByteBuffer.allocate(CONTENT.length))).isZero();
  }

  private static String chunked(ByteBuf body) {
    String text = new String(ByteBufUtil.getBytes(body), ISO_8859_1);
    return "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        + (text.isEmpty() ? "" : Integer.toHexString(text.length()) + "\r\n" + text + "\r\n")
        + "0\r\n\r\n";
  }

  private void assertListFails(ByteBuf body, PeerException.Kind kind) {
    answer(chunked(body));
    PeerException failure =
        catchThrowableOfType(
            PeerException.class,
            () -> client.list(peer, FileName.of("d"), batch -> {}, Patience.endless()));
    assertThat(failure).isNotNull();
    assertThat(failure.kind()).as(failure.getMessage()).isEqualTo(kind);
  }

  @Test
  void aDirectoryThatIsNone_isCorrupt() {
    PeerException.Kind corrupt = PeerException.Kind.CORRUPT;
    assertListFails(Unpooled.EMPTY_BUFFER, corrupt);
    assertListFails(Unpooled.buffer().writeByte(PeerFrames.WAIT), corrupt);
    assertListFails(Unpooled.buffer().writeByte(77), corrupt);
    assertListFails(
        Unpooled.buffer().writeByte(PeerFrames.ENTRIES).writeInt(Integer.MAX_VALUE), corrupt);
    assertListFails(Unpooled.buffer().writeByte(PeerFrames.ENTRIES).writeInt(-1), corrupt);
    assertListFails(
        Unpooled.buffer().writeByte(PeerFrames.ENTRIES).writeInt(3).writeMedium(0), corrupt);
    assertListFails(Unpooled.buffer().writeByte(PeerFrames.END).writeLong(1).writeInt(0), corrupt);
    assertListFails(Unpooled.buffer().writeByte(PeerFrames.END).writeLong(0).writeInt(1), corrupt);
    assertListFails(
        Unpooled.buffer()
            .writeByte(PeerFrames.REFUSED)
            .writeShort(502)
            .writeShort(1)
            .writeByte('x'),
        PeerException.Kind.FAILED);
  }

  @Test
  void framesOfNothing_areWaitedForUntilOthersGaveUp() {
    behaviour =
        (in, out) -> {
          request(in);
          out.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".getBytes(ISO_8859_1));
          while (true) {
            out.write("1\r\n\0\r\n".getBytes(ISO_8859_1));
            Thread.sleep(20);
          }
        };
    threads.execute(
        () -> {
          LockSupport.parkNanos(2_000_000_000L);
          isGivenUp = true;
        });
    // Of these limits only the last counts here: a busy machine may pause longer than the others.
    PeerTimeouts timeouts =
        new PeerTimeouts(
            SHORT.connect(), Duration.ofMinutes(1), Duration.ofMinutes(1), SHORT.total());
    try (HttpPeerClient waiting =
        new HttpPeerClient(FakeService.key(), null, timeouts, 2, asked -> isGivenUp, null)) {
      long since = System.nanoTime();
      PeerException failure =
          catchThrowableOfType(
              PeerException.class,
              () -> waiting.list(peer, FileName.of("d"), batch -> {}, Patience.endless()));
      assertThat(Duration.ofNanos(System.nanoTime() - since)).isGreaterThan(SHORT.total());
      assertThat(failure.kind()).isEqualTo(PeerException.Kind.FAILED);
    }
  }

  /** Also for those that waited behind the two requests in progress. */
  @Test
  void aPeerThatGoes_isNotAskedAgainForThoseThatWaited() throws Exception {
    AtomicInteger requests = new AtomicInteger();
    CountDownLatch goes = new CountDownLatch(1);
    behaviour =
        (in, out) -> {
          request(in);
          requests.incrementAndGet();
          goes.await();
        };
    List<PeerException.Kind> kinds = Collections.synchronizedList(new ArrayList<>());
    List<Thread> readers = new ArrayList<>();
    try (HttpPeerClient patient =
        new HttpPeerClient(FakeService.key(), null, FakeService.PATIENT, peer -> false, null)) {
      for (int i = 0; i < 6; i++) {
        Thread reader =
            new Thread(
                () -> {
                  try {
                    patient.fetch(
                        peer,
                        FileName.of("f"),
                        FakeService.version(CONTENT),
                        0,
                        ByteBuffer.allocateDirect(CONTENT.length),
                        false,
                        Patience.endless());
                  } catch (PeerException e) {
                    kinds.add(e.kind());
                  }
                });
        readers.add(reader);
        reader.start();
      }
      Await.until(
          "two ask and four wait",
          () ->
              requests.get() == 2
                  && readers.stream()
                      .map(Thread::getState)
                      .allMatch(
                          state ->
                              state == Thread.State.WAITING
                                  || state == Thread.State.TIMED_WAITING));
      goes.countDown();
      for (Thread reader : readers) {
        reader.join();
      }
    }
    assertThat(kinds).hasSize(6).containsOnly(PeerException.Kind.UNREACHABLE);
    assertThat(requests.get()).isEqualTo(2);
  }

  /** The result of each file of a batch for a given answer. */
  private List<Throwable> batch(int files, ByteBuf body) throws Exception {
    behaviour =
        (in, out) -> {
          while (true) {
            if (request(in).startsWith("POST")) {
              out.write(chunked(body.duplicate()).getBytes(ISO_8859_1));
            } else {
              Thread.sleep(100); // so that the others are batched
              out.write(good().getBytes(ISO_8859_1));
            }
            out.flush();
          }
        };
    List<Future<byte[]>> reading = new ArrayList<>();
    for (int i = 0; i < files + 2; i++) {
      reading.add(threads.submit(this::read));
    }
    List<Throwable> failures = new ArrayList<>();
    for (Future<byte[]> one : reading) {
      try {
        assertThat(one.get()).isEqualTo(CONTENT);
      } catch (java.util.concurrent.ExecutionException e) {
        failures.add(e.getCause());
      }
    }
    return failures;
  }

  private static ByteBuf file(ByteBuf out, int checksumChange) {
    out.writeByte(PeerFrames.FILE);
    PeerFormat.putStatus(out, FakeService.statusOf(FakeService.REGULAR, CONTENT.length));
    out.writeInt(CONTENT.length);
    out.writeInt(Blocks.checksum(ByteBuffer.wrap(CONTENT)) + checksumChange);
    return out.writeBytes(CONTENT);
  }

  @Test
  void aBatch_isTakenFileByFile() throws Exception {
    ByteBuf body = Unpooled.buffer().writeByte(PeerFrames.WAIT);
    file(body, 0).writeByte(PeerFrames.WAIT);
    file(body, 1);
    file(body, 0);
    body.writeByte(PeerFrames.REFUSED).writeShort(421).writeShort(2).writeShort(0x4141);
    List<Throwable> failures = batch(4, body);
    assertThat(failures).hasSize(2);
    assertThat(failures)
        .extracting(e -> ((PeerException) e).kind())
        .containsExactlyInAnyOrder(PeerException.Kind.CORRUPT, PeerException.Kind.REFUSED);
  }

  @Test
  void aBatchThatIsCut_failsThoseThatMiss() throws Exception {
    ByteBuf body = file(Unpooled.buffer(), 0);
    ByteBuf second = file(Unpooled.buffer(), 0);
    body.writeBytes(second, second.readableBytes() - 3);
    List<Throwable> failures = batch(3, body);
    assertThat(failures).hasSize(2);
    assertThat(failures)
        .extracting(e -> ((PeerException) e).kind())
        .containsOnly(PeerException.Kind.CORRUPT);
  }

  @Test
  void aBatchWithMore_failsNobodyWrongly() throws Exception {
    ByteBuf body = file(file(file(Unpooled.buffer(), 0), 0), 0);
    assertThat(batch(2, body)).isEmpty();
  }
}
