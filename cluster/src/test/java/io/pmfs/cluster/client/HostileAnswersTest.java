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
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileIdentity;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.source.SourceStatus;
import io.pmfs.stage.formats.Blocks;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Answers of a member that lies, with every checksum right: whatever they hold, the client gives
 * something that a source could give, or says that it has none.
 */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
final class HostileAnswersTest {
  /** The peer closes each connection, so that nothing is waited for. */
  private static final PeerTimeouts PATIENT =
      new PeerTimeouts(
          Duration.ofSeconds(10),
          Duration.ofSeconds(10),
          Duration.ofSeconds(10),
          Duration.ofMinutes(1));

  private static final byte[] CONTENT = "some content".getBytes(ISO_8859_1);
  private static final FileName PATH = FileName.of("d/f");

  /** Several times what a directory may have. */
  private static final long MOST_SENT = 400L << 20;

  private final ExecutorService threads = Executors.newCachedThreadPool();
  private ServerSocket socket;
  private HttpPeerClient client;
  private Member peer;

  /** What the peer sends after each request before it closes the connection. */
  private volatile Sending sending = out -> {};

  private interface Sending {
    void send(OutputStream out) throws IOException;
  }

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
    client = new HttpPeerClient(FakeService.key(), null, PATIENT, 2, asked -> false, null);
    threads.execute(
        () -> {
          while (true) {
            try {
              Socket accepted = socket.accept();
              threads.execute(() -> serve(accepted));
            } catch (IOException e) {
              return;
            }
          }
        });
  }

  private void serve(Socket accepted) {
    try (accepted) {
      InputStream in = accepted.getInputStream();
      int end = 0;
      while (end < 4) {
        int c = in.read();
        if (c < 0) {
          return;
        }
        end = c == (end % 2 == 0 ? '\r' : '\n') ? end + 1 : 0;
      }
      sending.send(accepted.getOutputStream());
      accepted.shutdownOutput();
      // The client may still send: a reset would take the answer from it.
      in.transferTo(OutputStream.nullOutputStream());
    } catch (IOException e) {
      // The client has left.
    }
  }

  @AfterEach
  void stop() throws Exception {
    client.close();
    socket.close();
    threads.shutdownNow();
  }

  // ---- answers in the right form

  private static byte[] whole(byte[] body, String... headers) {
    String head =
        "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n"
            .formatted(body.length, String.join("", headers));
    return join(head.getBytes(ISO_8859_1), body);
  }

  private static byte[] chunked(byte[] body) {
    String head =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n".formatted(body.length);
    return join(head.getBytes(ISO_8859_1), body, "\r\n0\r\n\r\n".getBytes(ISO_8859_1));
  }

  private static byte[] join(byte[]... parts) {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    Arrays.stream(parts).forEach(all::writeBytes);
    return all.toByteArray();
  }

  /** A directory of these bytes, with the count and the checksum that fit. */
  private static byte[] directory(ByteBuf entries, long count) {
    byte[] bytes = ByteBufUtil.getBytes(entries);
    CRC32C crc = new CRC32C();
    crc.update(bytes);
    ByteBuf body = Unpooled.buffer();
    body.writeByte(PeerFrames.ENTRIES).writeInt(bytes.length).writeBytes(bytes);
    body.writeByte(PeerFrames.END).writeLong(count).writeInt((int) crc.getValue());
    return chunked(ByteBufUtil.getBytes(body));
  }

  private static ByteBuf entry(byte[] name, SourceStatus status) {
    ByteBuf out = Unpooled.buffer();
    out.writeShort(name.length).writeBytes(name);
    PeerFormat.putStatus(out, status);
    return out;
  }

  private static SourceStatus status() {
    return FakeService.statusOf(FakeService.REGULAR, CONTENT.length);
  }

  private static SourceStatus status(int mode, long size, Instant time) {
    return new SourceStatus(
        new FileIdentity(-1, -1),
        new Attributes(mode, -1, -1, -1, -1, size, Long.MIN_VALUE, time, time, time));
  }

  private static byte[] content() {
    return whole(
        CONTENT,
        "Pmfs-Status: " + PeerFormat.statusHeader(status()) + "\r\n",
        "Pmfs-Checksum: body "
            + PeerFormat.hex(Blocks.checksum(ByteBuffer.wrap(CONTENT)))
            + "\r\n");
  }

  private void answer(byte[] answer) {
    sending = out -> out.write(answer);
  }

  private List<SourceEntry> list() throws PeerException {
    List<SourceEntry> entries = new ArrayList<>();
    client.list(peer, PATH, entries::addAll, Patience.endless());
    return entries;
  }

  private PeerException.Kind listFailure(byte[] answer) {
    answer(answer);
    PeerException failure = catchThrowableOfType(PeerException.class, this::list);
    assertThat(failure).isNotNull();
    return failure.kind();
  }

  // ---- single lies

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        ".",
        "..",
        "/",
        "a/b",
        "../../etc/shadow",
        "/etc/shadow",
        "a\0",
        "\0",
        "a/",
        "LONG",
        "LONGEST"
      })
  void entry_withANameThatIsNone_isCorrupt(String text) throws Exception {
    String name = text.replace("LONGEST", "x".repeat(65_000)).replace("LONG", "x".repeat(256));
    byte[] answer = directory(entry(name.getBytes(ISO_8859_1), status()), 1);
    assertThat(listFailure(answer)).isEqualTo(PeerException.Kind.CORRUPT);
    String longest = "x".repeat(255);
    answer(directory(entry(longest.getBytes(ISO_8859_1), status()), 1));
    assertThat(list()).singleElement().extracting(SourceEntry::name).hasToString(longest);
  }

  @Test
  void attributes_thatNoFileHas_areCorrupt() {
    byte[] name = {'n'};
    Instant time = Instant.EPOCH;
    for (SourceStatus bad :
        List.of(
            status(0100644, -1, time),
            status(0100644, Long.MIN_VALUE, time),
            status(0, 1, time),
            status(0170000, 1, time),
            status(07777, 1, time))) {
      assertThat(listFailure(directory(entry(name, bad), 1))).isEqualTo(PeerException.Kind.CORRUPT);
    }
    ByteBuf late = entry(name, status());
    late.setLong(late.writerIndex() - 12, Long.MAX_VALUE);
    assertThat(listFailure(directory(late, 1))).isEqualTo(PeerException.Kind.CORRUPT);
  }

  @Test
  void countAndSizes_thatDoNotFit_areCorrupt() {
    byte[] name = {'n'};
    for (long count : new long[] {0, 2, -1, Long.MAX_VALUE}) {
      assertThat(listFailure(directory(entry(name, status()), count)))
          .isEqualTo(PeerException.Kind.CORRUPT);
    }
    ByteBuf huge = Unpooled.buffer().writeByte(PeerFrames.ENTRIES).writeInt(Integer.MAX_VALUE);
    assertThat(listFailure(chunked(ByteBufUtil.getBytes(huge))))
        .isEqualTo(PeerException.Kind.CORRUPT);
  }

  /** As long as it may be, the memory of the client has a limit. */
  @Test
  void list_withoutEnd_isGivenUp() throws Exception {
    ByteBuf entries = Unpooled.buffer();
    while (entries.readableBytes() < 100_000) {
      entries.writeBytes(entry("x".repeat(250).getBytes(ISO_8859_1), status()));
    }
    ByteBuf frame = Unpooled.buffer().writeByte(PeerFrames.ENTRIES);
    frame.writeInt(entries.readableBytes()).writeBytes(entries);
    byte[] bytes = ByteBufUtil.getBytes(frame);
    long[] sent = {0};
    sending =
        out -> {
          out.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".getBytes(ISO_8859_1));
          while (sent[0] < MOST_SENT) {
            out.write("%x\r\n".formatted(bytes.length).getBytes(ISO_8859_1));
            out.write(bytes);
            out.write("\r\n".getBytes(ISO_8859_1));
            sent[0] += bytes.length;
          }
        };
    PeerException failure = catchThrowableOfType(PeerException.class, this::list);
    assertThat(failure).isNotNull();
    assertThat(failure.kind()).isEqualTo(PeerException.Kind.REFUSED);
    assertThat(sent[0]).isLessThan(MOST_SENT);
  }

  @Test
  void smallAnswer_thatIsLargeOrStrange_isCorrupt() {
    for (byte[] bad :
        List.of(new byte[0], new byte[4096], "a\0b".getBytes(ISO_8859_1), new byte[1 << 20])) {
      answer(whole(bad));
      PeerException failure =
          catchThrowableOfType(
              PeerException.class, () -> client.readSymbolicLink(peer, PATH, Patience.endless()));
      assertThat(failure.kind()).isEqualTo(PeerException.Kind.CORRUPT);
    }
    for (ByteBuf bad :
        List.of(
            Unpooled.buffer().writeInt(-1),
            Unpooled.buffer().writeInt(Integer.MAX_VALUE),
            Unpooled.buffer().writeInt(65_536),
            Unpooled.buffer().writeInt(1).writeInt(0).writeInt(0),
            Unpooled.buffer().writeInt(1).writeInt(1).writeByte(0).writeInt(0),
            Unpooled.buffer().writeInt(1).writeInt(256).writeBytes(new byte[256]).writeInt(0),
            Unpooled.buffer().writeInt(1).writeInt(1).writeByte('u').writeInt(Integer.MAX_VALUE),
            Unpooled.buffer().writeInt(0).writeByte(0))) {
      answer(whole(ByteBufUtil.getBytes(bad)));
      PeerException failure =
          catchThrowableOfType(
              PeerException.class, () -> client.extendedAttributes(peer, PATH, Patience.endless()));
      assertThat(failure.kind()).isEqualTo(PeerException.Kind.CORRUPT);
    }
    for (ByteBuf bad :
        List.of(
            Unpooled.buffer().writeInt(0).writeShort(0).writeInt(0).writeShort(0),
            Unpooled.buffer().writeInt(3).writeShort(0).writeInt(0).writeShort(0),
            Unpooled.buffer().writeInt(1).writeShort(513).writeZero(513).writeInt(0).writeShort(0),
            Unpooled.buffer().writeInt(1).writeShort(0).writeInt(-1).writeShort(0),
            Unpooled.buffer().writeInt(1).writeShort(0).writeInt(0).writeByte(17),
            Unpooled.buffer().writeInt(1).writeShort(0).writeInt(0).writeShort(1).writeInt(-1),
            Unpooled.buffer().writeInt(1).writeShort(0).writeInt(0).writeShort(0).writeByte(0))) {
      answer(whole(ByteBufUtil.getBytes(bad)));
      PeerException failure =
          catchThrowableOfType(
              PeerException.class,
              () ->
                  client.blocks(
                      peer,
                      PATH,
                      FakeService.version(new byte[9]),
                      HeldBlocks.Wanted.NOTHING,
                      Patience.endless()));
      assertThat(failure.kind()).isEqualTo(PeerException.Kind.CORRUPT);
    }
    answer("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n".getBytes(ISO_8859_1));
    assertThat(
            catchThrowableOfType(
                    PeerException.class, () -> client.status(peer, PATH, Patience.endless()))
                .kind())
        .isEqualTo(PeerException.Kind.CORRUPT);
  }

  // ---- any lies

  private interface Call {
    void call() throws PeerException;
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4})
  void fuzzedAnswers_giveWhatASourceCouldGive_orNone(long seed) throws Exception {
    Random random = new Random(seed);
    for (int i = 0; i < 250; i++) {
      int kind = random.nextInt(5);
      byte[] bytes = spoiled(random, kind);
      answer(bytes);
      long begin = System.nanoTime();
      try {
        call(kind).call();
      } catch (PeerException e) {
        assertThat(e.getMessage()).isNotNull();
      }
      assertThat(Duration.ofNanos(System.nanoTime() - begin))
          .as("seed %s, %s", seed, i)
          .isLessThan(Duration.ofSeconds(10));
    }
    answer(content());
    ByteBuffer destination = ByteBuffer.allocateDirect(CONTENT.length);
    client.fetch(
        peer, PATH, FakeService.version(CONTENT), 0, destination, false, Patience.endless());
  }

  /**
   * A good answer of that kind with some bytes changed, cut or added, often within its checksum.
   */
  private static byte[] spoiled(Random random, int kind) {
    ByteBuf entries = entry("name".getBytes(ISO_8859_1), status());
    entries.writeBytes(entry("other".getBytes(ISO_8859_1), status()));
    ByteBuf attributes = Unpooled.buffer().writeInt(1).writeInt(6);
    attributes.writeBytes("user.x".getBytes(ISO_8859_1)).writeInt(1).writeByte(7);
    ByteBuf status = Unpooled.buffer();
    PeerFormat.putStatus(status, status());
    boolean isInside = random.nextBoolean();
    byte[] answer =
        switch (kind) {
          case 0 -> {
            if (isInside) {
              spoil(random, entries);
            }
            yield directory(entries, 2);
          }
          case 1 -> whole(ByteBufUtil.getBytes(isInside ? spoil(random, status) : status));
          case 2 -> whole("target".getBytes(ISO_8859_1));
          case 3 -> whole(ByteBufUtil.getBytes(isInside ? spoil(random, attributes) : attributes));
          default -> content();
        };
    if (isInside && kind != 2 && kind != 4) {
      return answer;
    }
    ByteBuf all = spoil(random, Unpooled.copiedBuffer(answer));
    byte[] spoiled = ByteBufUtil.getBytes(all);
    return switch (random.nextInt(4)) {
      case 0 -> Arrays.copyOf(spoiled, random.nextInt(spoiled.length));
      case 1 -> join(spoiled, new byte[random.nextInt(50)]);
      default -> spoiled;
    };
  }

  private static ByteBuf spoil(Random random, ByteBuf bytes) {
    for (int change = random.nextInt(5); change >= 0; change--) {
      bytes.setByte(random.nextInt(bytes.readableBytes()), random.nextInt(256));
    }
    return bytes;
  }

  private Call call(int kind) {
    return switch (kind) {
      case 0 ->
          () -> {
            for (SourceEntry entry : list()) {
              assertThat(entry.name().isEntry()).isTrue();
              assertPossible(entry.attributes());
            }
          };
      case 1 -> () -> assertPossible(client.status(peer, PATH, Patience.endless()).attributes());
      case 2 ->
          () ->
              assertThat(client.readSymbolicLink(peer, PATH, Patience.endless()).size())
                  .isBetween(1, 4095);
      case 3 ->
          () -> {
            Map<FileName, byte[]> attributes =
                client.extendedAttributes(peer, PATH, Patience.endless());
            assertThat(attributes.keySet()).allMatch(name -> name.size() > 0);
          };
      default ->
          () -> {
            ByteBuffer destination = ByteBuffer.allocateDirect(CONTENT.length);
            client.fetch(
                peer,
                PATH,
                FakeService.version(CONTENT),
                0,
                destination,
                false,
                Patience.endless());
          };
    };
  }

  private static void assertPossible(Attributes attributes) {
    assertThat(attributes.size()).isNotNegative();
    assertThat(FileType.ofMode(attributes.mode())).isNotNull();
  }
}
