package io.pmfs.cluster.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.cluster.client.HttpPeerClient;
import io.pmfs.cluster.client.Patience;
import io.pmfs.cluster.client.PeerClient;
import io.pmfs.cluster.client.PeerTimeouts;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.peers.FakeService;
import io.pmfs.cluster.peers.HeldBlocks;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.RequestSignature;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.Await;
import io.pmfs.source.SourceStatus;
import io.pmfs.stage.formats.Blocks;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The server and the client of pmfs, on loopback. */
@Timeout(value = 60, unit = TimeUnit.SECONDS)
public final class PeerHttpTest {
  private static final byte[] KEY =
      "a secret of some length".getBytes(java.nio.charset.StandardCharsets.UTF_8);
  private static final long INSTANCE = 0xfedcba9876543210L;

  private final FakeService service = new FakeService();
  private final Random random = new Random(7);
  private PeerServer server;
  private HttpPeerClient client;
  private Member peer;

  @TempDir Path directory;

  @BeforeEach
  void start() throws Exception {
    serve();
    client = new HttpPeerClient(KEY, null, FakeService.PATIENT, peer -> false, null);
  }

  private void serve() throws Exception {
    server =
        new PeerServer(
            "127.0.0.1",
            new RequestSignature(KEY, INSTANCE, InstantSource.system()),
            null,
            PeerLimits.DEFAULTS,
            service,
            (method, path, body) ->
                new NodeRequests.Answer(
                    path.startsWith("task") ? 409 : 200, method + " " + path + " " + body),
            OutputRequests.NONE);
    peer = member(server, INSTANCE);
  }

  public static Member member(PeerServer server, long instance) {
    return new Member(
        UUID.nameUUIDFromBytes(new byte[] {1}),
        instance,
        "fake",
        "127.0.0.1",
        server.address().getPort());
  }

  @AfterEach
  void stop() {
    client.close();
    server.close();
  }

  private byte[] bytes(int size) {
    byte[] bytes = new byte[size];
    random.nextBytes(bytes);
    return bytes;
  }

  private byte[] file(String path, int size, String kind) throws Exception {
    byte[] bytes = bytes(size);
    if (kind.equals("memory")) {
      service.put(path, bytes);
    } else {
      Path file = directory.resolve(UUID.randomUUID().toString());
      FileChannel channel =
          FileChannel.open(
              file,
              StandardOpenOption.CREATE,
              StandardOpenOption.READ,
              StandardOpenOption.WRITE,
              StandardOpenOption.DELETE_ON_CLOSE);
      service.put(path, bytes, channel, kind.equals("recorded"));
    }
    return bytes;
  }

  private byte[] read(String path, byte[] whole, long offset, int size) throws PeerException {
    ByteBuffer destination = ByteBuffer.allocateDirect(size + 5).position(3).limit(3 + size);
    SourceStatus status =
        client
            .fetch(
                peer,
                FileName.of(path),
                FakeService.version(whole),
                offset,
                destination,
                false,
                Patience.endless())
            .status();
    assertThat(status).isEqualTo(FakeService.statusOf(FakeService.REGULAR, whole.length));
    assertThat(destination.hasRemaining()).isFalse();
    byte[] bytes = new byte[size];
    destination.get(3, bytes);
    return bytes;
  }

  private static byte[] part(byte[] whole, int offset, int size) {
    return java.util.Arrays.copyOfRange(whole, offset, offset + size);
  }

  @ParameterizedTest
  @CsvSource({
    "memory, 0",
    "memory, 1",
    "memory, 65536",
    "memory, 65537",
    "memory, 3000000",
    "disk, 1",
    "disk, 200000",
    "disk, 3000000",
    "disk, 40000000",
    "recorded, 1",
    "recorded, 100000",
    "recorded, 1048576",
    "recorded, 3000000",
    "recorded, 40000000"
  })
  void read_ofAWholeFile_givesItsBytes(String kind, int size) throws Exception {
    byte[] whole = file("a b/ü%", size, kind);
    assertThat(read("a b/ü%", whole, 0, size)).isEqualTo(whole);
    assertThat(client.statistics(peer).failures()).isZero();
    assertThat(client.statistics(peer).bytes()).isEqualTo(size);
  }

  @ParameterizedTest
  @ValueSource(strings = {"memory", "disk", "recorded"})
  void read_ofARange_givesItsBytes(String kind) throws Exception {
    byte[] whole = file("f", 5 * Blocks.SIZE + 1234, kind);
    for (int[] range :
        new int[][] {
          {0, 1},
          {1, 0},
          {7, 200_000},
          {Blocks.SIZE, Blocks.SIZE},
          {Blocks.SIZE, 2 * Blocks.SIZE},
          {Blocks.SIZE - 1, Blocks.SIZE + 2},
          {5 * Blocks.SIZE, 1234},
          {whole.length - 1, 1}
        }) {
      assertThat(read("f", whole, range[0], range[1])).isEqualTo(part(whole, range[0], range[1]));
    }
  }

  @Test
  void read_ofAnotherVersion_isRefused() throws Exception {
    byte[] whole = file("f", 100, "memory");
    ByteBuffer destination = ByteBuffer.allocateDirect(100);
    SourceVersion other = new SourceVersion(100, Instant.ofEpochSecond(5));
    assertThatThrownBy(
            () ->
                client.fetch(
                    peer, FileName.of("f"), other, 0, destination, false, Patience.endless()))
        .hasMessageContaining("412")
        .extracting(e -> ((PeerException) e).kind())
        .isEqualTo(PeerException.Kind.REFUSED);
    assertThat(destination.remaining()).isEqualTo(100);
    assertThat(read("f", whole, 0, 100)).isEqualTo(whole);
  }

  @ParameterizedTest
  @CsvSource({
    "missing, FAILED, 404", "broken, FAILED, 502", "bug, FAILED, 500", "foreign, REFUSED, 421",
    "../etc/passwd, REFUSED, 403", "a//b, REFUSED, 403", "/etc, REFUSED, 403", "a/., REFUSED, 403"
  })
  void read_thatFails_saysWhoseDoingItWas(String path, PeerException.Kind kind, String code) {
    // A forbidden path is a mistake of the client, not of the source.
    PeerException.Kind expected = code.equals("403") ? PeerException.Kind.FAILED : kind;
    assertThatThrownBy(() -> read(path, new byte[9], 0, 9))
        .hasMessageContaining(code)
        .extracting(e -> ((PeerException) e).kind())
        .isEqualTo(expected);
    assertThat(server.statistics().refused()).containsEntry(code, 1L);
  }

  @Test
  void read_ofCopiesOnly_isRefusedWhereThereIsNone() throws Exception {
    byte[] whole = file("uncopied", 10, "memory");
    assertThatThrownBy(
            () ->
                client.fetch(
                    peer,
                    FileName.of("uncopied"),
                    FakeService.version(whole),
                    0,
                    ByteBuffer.allocateDirect(10),
                    true,
                    Patience.endless()))
        .hasMessageContaining("504");
    assertThat(read("uncopied", whole, 0, 10)).isEqualTo(whole);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 3000})
  void list_givesAllEntries(int count) throws Exception {
    List<SourceEntry> entries = new ArrayList<>();
    client.list(peer, FileName.of("dir" + count), entries::addAll, Patience.endless());
    assertThat(entries).hasSize(count);
    if (count > 0) {
      assertThat(entries.get(count - 1).name()).isEqualTo(FileName.of("file-" + (count - 1)));
      assertThat(entries.get(count - 1).attributes().size()).isEqualTo(count - 1);
    }
  }

  @Test
  void list_thatFailsInItsMidst_fails() {
    assertThatThrownBy(
            () -> client.list(peer, FileName.of("dir6000"), batch -> {}, Patience.endless()))
        .hasMessageContaining("in the midst");
    assertThatThrownBy(() -> client.list(peer, FileName.of("f"), batch -> {}, Patience.endless()))
        .hasMessageContaining("404");
  }

  @Test
  void names_areAnswered() throws Exception {
    file("f", 77, "memory");
    assertThat(client.status(peer, FileName.of("f"), Patience.endless()))
        .isEqualTo(FakeService.statusOf(FakeService.REGULAR, 77));
    assertThat(client.status(peer, FileName.of(""), Patience.endless()).attributes().mode())
        .isEqualTo(0040755);
    assertThat(client.readSymbolicLink(peer, FileName.of("l"), Patience.endless()))
        .isEqualTo(FileName.of("to-l"));
    assertThat(client.extendedAttributes(peer, FileName.of("f"), Patience.endless()))
        .containsEntry(FileName.of("user.a"), new byte[] {1, 0, 2})
        .containsEntry(FileName.of("user.b"), new byte[0])
        .hasSize(2);
  }

  @Test
  void call_asksTheNodeItself() throws Exception {
    assertThat(client.call(peer, "POST", "node/x?y=1", "{}")).isEqualTo("POST node/x?y=1 {}");
    assertThat(client.call(peer, "GET", "node", "")).isEqualTo("GET node ");
    assertThatThrownBy(() -> client.call(peer, "DELETE", "task/5", ""))
        .hasMessageContaining("409: DELETE task/5");
  }

  @Test
  void read_ofARange_namesTheAskerAndTheHolders() throws Exception {
    byte[] whole = file("large", 3_000_000, "memory");
    UUID self = new UUID(1, 2);
    service.holders = List.of(new UUID(3, 4), new UUID(5, 6));
    HttpPeerClient keeping =
        new HttpPeerClient(KEY, null, FakeService.PATIENT, 2, m -> false, self);
    try {
      ByteBuffer destination = ByteBuffer.allocateDirect(1 << 20);
      PeerClient.Given given =
          keeping.fetch(
              peer,
              FileName.of("large"),
              FakeService.version(whole),
              1 << 20,
              destination,
              false,
              Patience.endless());

      assertThat(given.holders()).isEqualTo(service.holders);
      assertThat(service.asker).isEqualTo(self);
    } finally {
      keeping.close();
    }
    read("large", whole, 0, 1000);
    assertThat(service.asker).as("the asker, if it keeps no copies").isNull();
  }

  @Test
  void blocks_ofAFile_comeAsTheyWereSent() throws Exception {
    UUID self = new UUID(1, 2);
    SourceVersion version = FakeService.version(new byte[7]);
    HeldBlocks.Wanted wanted = new HeldBlocks.Wanted(List.of(0, 70_000), List.of(3));
    HttpPeerClient keeping =
        new HttpPeerClient(KEY, null, FakeService.PATIENT, 2, m -> false, self);
    try {
      for (int count : new int[] {1, 4096, 4097, 1 << 20}) {
        BitSet has = new BitSet();
        has.set(0, count / 2 + 1);
        service.blocks =
            HeldBlocks.of(count, has, 511, List.of(new UUID(3, 4)), List.of(5, 1 << 20));
        HeldBlocks held =
            keeping.blocks(peer, FileName.of("large"), version, wanted, Patience.endless());
        assertThat(held).isEqualTo(service.blocks);
        assertThat(held.has(0)).isEqualTo(count < 4097 || count / 2 + 1 >= held.unit());
        assertThat(held.has(count)).isFalse();
        assertThat(service.wanted).isEqualTo(wanted);
        assertThat(service.asker).isEqualTo(self);
      }
      service.blocks = null;
      assertThatThrownBy(
              () -> keeping.blocks(peer, FileName.of("large"), version, wanted, Patience.endless()))
          .hasMessageContaining("no copy");
    } finally {
      keeping.close();
    }
  }

  @Test
  void aPeerThatWaits_isWaitedFor() throws Exception {
    byte[] whole = file("slow", 300_000, "memory");
    service.held = "slow";
    HttpPeerClient impatient =
        new HttpPeerClient(
            KEY,
            null,
            new PeerTimeouts(
                java.time.Duration.ofSeconds(20),
                java.time.Duration.ofSeconds(3),
                java.time.Duration.ofSeconds(3),
                java.time.Duration.ofSeconds(40)),
            peer -> false,
            null);
    client.close();
    client = impatient;
    try (Closing pool = new Closing()) {
      Future<byte[]> reading = pool.executor().submit(() -> read("slow", whole, 0, 300_000));
      service.waiting.await();
      // Longer than the client waits for a silent peer.
      assertThatThrownBy(() -> reading.get(4, TimeUnit.SECONDS))
          .isInstanceOf(java.util.concurrent.TimeoutException.class);
      service.gate.release();
      assertThat(reading.get()).isEqualTo(whole);
    }
    assertThat(server.statistics().longestWaitMillis()).isGreaterThan(2000);
  }

  @Test
  void smallReads_thatMeet_travelTogether() throws Exception {
    int count = 300;
    List<byte[]> files = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      files.add(
          file("small" + i, i * 37, i % 3 == 0 ? "memory" : i % 3 == 1 ? "disk" : "recorded"));
    }
    byte[] wholeHeld = file("held", 10, "memory");
    service.held = "held";
    try (Closing pool = new Closing()) {
      List<Future<byte[]>> held = new ArrayList<>();
      for (int i = 0; i < 2; i++) {
        held.add(pool.executor().submit(() -> read("held", wholeHeld, 0, 10)));
      }
      service.waiting.await();
      List<Future<byte[]>> reading = new ArrayList<>();
      for (int i = 0; i < count; i++) {
        String path = "small" + i;
        byte[] whole = files.get(i);
        reading.add(pool.executor().submit(() -> read(path, whole, 0, whole.length)));
      }
      reading.add(pool.executor().submit(() -> read("missing", new byte[3], 0, 3)));
      service.gate.release(2);
      for (int i = 0; i < count; i++) {
        assertThat(reading.get(i).get()).isEqualTo(files.get(i));
      }
      assertThatThrownBy(() -> reading.get(count).get()).hasMessageContaining("404");
      for (Future<byte[]> one : held) {
        assertThat(one.get()).isEqualTo(wholeHeld);
      }
    }
    assertThat(server.statistics().requests()).isLessThan(count);
  }

  @Test
  void manyThreads_getTheirOwnBytes() throws Exception {
    List<byte[]> files = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      files.add(file("f" + i, i * 20_011, i % 2 == 0 ? "disk" : "recorded"));
    }
    try (Closing pool = new Closing()) {
      List<Future<?>> reading = new ArrayList<>();
      for (int thread = 0; thread < 16; thread++) {
        long seed = thread;
        reading.add(
            pool.executor()
                .submit(
                    () -> {
                      Random own = new Random(seed);
                      for (int i = 0; i < 100; i++) {
                        int file = own.nextInt(files.size());
                        byte[] whole = files.get(file);
                        assertThat(read("f" + file, whole, 0, whole.length)).isEqualTo(whole);
                      }
                      return null;
                    }));
      }
      for (Future<?> one : reading) {
        one.get();
      }
    }
    // A client may have its answer before the server knows that it was sent.
    Await.until("nothing is being answered", () -> server.statistics().active() == 0);
    assertThat(client.statistics(peer).medianMillis()).isPositive();
  }

  /** Another secret, another instance, no secret: each is refused with the reason. */
  @Test
  void requests_thatAreNotForThisServer_areRefused() throws Exception {
    byte[] whole = file("f", 10, "memory");
    assertRefused(new byte[] {1, 2, 3}, peer, "signature is wrong", whole);
    assertRefused(KEY, member(server, 5), "signature is wrong", whole);
    assertThat(server.statistics().refused()).containsEntry("401", 2L);
    assertThat(service.reads.get()).isZero();
  }

  private void assertRefused(byte[] key, Member whom, String why, byte[] whole) {
    try (HttpPeerClient other =
        new HttpPeerClient(key, null, FakeService.PATIENT, peer -> false, null)) {
      assertThatThrownBy(
              () ->
                  other.fetch(
                      whom,
                      FileName.of("f"),
                      FakeService.version(whole),
                      0,
                      ByteBuffer.allocateDirect(whole.length),
                      false,
                      Patience.endless()))
          .hasMessageContaining(why)
          .extracting(e -> ((PeerException) e).kind())
          .isEqualTo(PeerException.Kind.REFUSED);
    }
  }

  @Test
  void aServerThatIsGone_isUnreachable() throws Exception {
    byte[] whole = file("f", 10, "memory");
    assertThat(read("f", whole, 0, 10)).isEqualTo(whole);
    server.close();
    assertThatThrownBy(() -> read("f", whole, 0, 10))
        .extracting(e -> ((PeerException) e).kind())
        .isEqualTo(PeerException.Kind.UNREACHABLE);
    assertThat(client.statistics(peer).failures()).isEqualTo(1);
  }

  /** ExecutorService is not AutoCloseable in Java 17. */
  private record Closing(ExecutorService executor) implements AutoCloseable {
    Closing() {
      this(Executors.newCachedThreadPool());
    }

    @Override
    public void close() {
      executor.shutdownNow();
    }
  }
}
