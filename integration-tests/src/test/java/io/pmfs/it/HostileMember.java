package io.pmfs.it;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.cluster.client.HttpPeerClient;
import io.pmfs.cluster.client.Patience;
import io.pmfs.cluster.client.PeerTimeouts;
import io.pmfs.cluster.members.ClusterSecret;
import io.pmfs.cluster.members.ClusterSettings;
import io.pmfs.cluster.members.GroupTimings;
import io.pmfs.cluster.members.InfinispanMembership;
import io.pmfs.cluster.members.Member;
import io.pmfs.cluster.members.Membership;
import io.pmfs.cluster.peers.HeldBlocks;
import io.pmfs.cluster.peers.PeerException;
import io.pmfs.cluster.peers.RequestSignature;
import io.pmfs.cluster.server.NodeRequests;
import io.pmfs.cluster.server.OutputRequests;
import io.pmfs.cluster.server.PeerLimits;
import io.pmfs.cluster.server.PeerServer;
import io.pmfs.cluster.server.PeerService;
import io.pmfs.fuse.system.DirectoryStore;
import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceEntry;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.FsException;
import io.pmfs.source.SourceFile;
import io.pmfs.source.SourceStatus;
import io.pmfs.stage.formats.Blocks;
import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalInt;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A member that knows the secret and owns its share of the files, in a process of its own. It
 * answers from the source, and spoils the contents and directories that it sends, or what it says
 * about blocks of large files, in one way or another: each line of its standard input is the name
 * of a {@link Mode}, which it answers with how many answers it has spoiled so far. It ends with its
 * standard input.
 */
final class HostileMember {
  /** What becomes of answers. */
  enum Mode {
    /** They are as they should be. */
    HONEST,
    /** Their heads say a byte less, or a chunk is cut short. */
    WRONG_LENGTH,
    /** They have all heads and lengths that they should, and a bit is flipped. */
    WRONG_BYTES,
    /** Nothing follows their heads. */
    HANGING,
    /** Everybody may read and enter everything that they describe. */
    OPEN_TO_ALL,
    /** It claims to have all blocks of large files, and gives none to who wants copies. */
    CLAIMED_BLOCKS,
    /** It offers blocks of large files that there are not, and names nodes that nobody knows. */
    OFFERED_BLOCKS,
    /** It names any blocks and nodes. */
    RANDOM_BLOCKS,
    /** It takes questions for blocks of large files, and says nothing. */
    NO_BLOCKS,
    /** It answers them with a byte a second. */
    TRICKLING_BLOCKS,
    /** It says without end that it is about to answer them. */
    WAITING_BLOCKS;

    boolean isAboutBlocks() {
      return compareTo(CLAIMED_BLOCKS) >= 0;
    }
  }

  private static final long LARGE_BYTES = 16 << 20;
  private static final long AGAIN_NANOS = 1_000_000_000;

  private static final AtomicLong spoiled = new AtomicLong();
  private static volatile Mode mode = Mode.HONEST;

  private HostileMember() {}

  /**
   * Joins.
   *
   * @param args the cluster's name with its dataset, the source, this one's address, those of all
   *     nodes with commas between them, the file with the secret
   */
  public static void main(String[] args) throws Exception {
    InetAddress address = InetAddress.getByName(args[2]);
    ClusterSecret secret = ClusterSecret.ofFile(Path.of(args[4]));
    long instance = System.nanoTime();
    DirectoryStore store = new DirectoryStore(Path.of(args[1]));
    PeerServer server =
        new PeerServer(
            args[2],
            new RequestSignature(
                secret.requestKey().getEncoded(), instance, InstantSource.system()),
            null,
            PeerLimits.DEFAULTS,
            new FromSource(store),
            NodeRequests.NONE,
            OutputRequests.NONE);
    try (ServerSocket listening = new ServerSocket(0, 128, address)) {
      start(() -> accept(listening, server.address()));
      ClusterSettings settings =
          new ClusterSettings(
              args[0], address, List.of(args[3].split(",")), null, secret, GroupTimings.DEFAULTS);
      Member self =
          new Member(new UUID(1, 1), instance, "hostile", args[2], listening.getLocalPort());
      BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, UTF_8));
      try (Membership membership =
          InfinispanMembership.join(settings, self, Duration.ofSeconds(20))) {
        membership.onChange(view -> {});
        start(() -> readAlong(membership, self, secret, Path.of(args[1]), store));
        System.out.println("joined");
        String line;
        while ((line = commands.readLine()) != null) {
          mode = Mode.valueOf(line);
          System.out.println(spoiled.get());
        }
      }
    }
    System.exit(0);
  }

  /** Something that ends with a connection. */
  private interface Task {
    void run() throws IOException;
  }

  private static void start(Task task) {
    Thread thread =
        new Thread(
            () -> {
              try {
                task.run();
              } catch (IOException e) {
                // That connection is over.
              }
            });
    thread.setDaemon(true);
    thread.start();
  }

  /**
   * Asks for blocks of large files as a node does that reads them, so that the others are told to
   * ask this one.
   */
  private static void readAlong(
      Membership membership, Member self, ClusterSecret secret, Path source, DirectoryStore store)
      throws IOException {
    List<FileName> large;
    try (Stream<Path> files = Files.walk(source)) {
      large =
          files
              .filter(file -> file.toFile().length() >= LARGE_BYTES)
              .map(file -> FileName.of(source.relativize(file).toString()))
              .toList();
    }
    byte[] key = secret.requestKey().getEncoded();
    try (HttpPeerClient client =
        new HttpPeerClient(key, null, PeerTimeouts.DEFAULTS, peer -> false, self.id())) {
      while (true) {
        for (Member member : membership.view().members()) {
          for (FileName file : mode.isAboutBlocks() ? large : List.<FileName>of()) {
            if (!member.equals(self)) {
              askForBlocks(client, member, file, store);
            }
          }
        }
        LockSupport.parkNanos(AGAIN_NANOS);
      }
    }
  }

  private static void askForBlocks(
      HttpPeerClient client, Member member, FileName file, DirectoryStore store) {
    try {
      SourceVersion version = store.status(file).attributes().version();
      client.blocks(member, file, version, HeldBlocks.Wanted.NOTHING, Patience.endless());
    } catch (PeerException | FsException e) {
      // It does not own the file.
    }
  }

  private static void accept(ServerSocket listening, InetSocketAddress server) throws IOException {
    while (true) {
      Socket client = listening.accept();
      start(
          () -> {
            try (client;
                Socket honest = new Socket(server.getAddress(), server.getPort())) {
              AtomicBoolean isAboutBlocks = new AtomicBoolean();
              start(
                  () -> {
                    try (honest) {
                      ask(client.getInputStream(), honest.getOutputStream(), isAboutBlocks);
                    }
                  });
              answer(
                  new BufferedInputStream(honest.getInputStream()),
                  client.getOutputStream(),
                  isAboutBlocks);
            }
          });
    }
  }

  /** Passes question after question on; each has been answered before the next comes. */
  private static void ask(InputStream in, OutputStream out, AtomicBoolean isAboutBlocks)
      throws IOException {
    byte[] bytes = new byte[1 << 16];
    for (int count = in.read(bytes); count >= 0; count = in.read(bytes)) {
      String text = new String(bytes, 0, count, ISO_8859_1);
      if (text.startsWith("GET ") || text.startsWith("POST ")) {
        isAboutBlocks.set(text.startsWith("GET /v1/blocks/"));
      }
      out.write(bytes, 0, count);
    }
  }

  /** Passes answer after answer on. */
  private static void answer(InputStream in, OutputStream out, AtomicBoolean isAboutBlocks)
      throws IOException {
    while (true) {
      String head = head(in);
      if (isAboutBlocks.get() && mode.compareTo(Mode.NO_BLOCKS) >= 0) {
        spoiled.incrementAndGet();
        keepWaiting(
            head + new String(in.readNBytes(size(head.toLowerCase(Locale.ROOT))), ISO_8859_1), out);
        return;
      }
      String lower = head.toLowerCase(Locale.ROOT);
      boolean isChunked = lower.contains("transfer-encoding: chunked");
      boolean isContent = isChunked || (lower.contains("pmfs-version") && size(lower) > 0);
      Mode way = isContent && mode.compareTo(Mode.OPEN_TO_ALL) < 0 ? mode : Mode.HONEST;
      if (way != Mode.HONEST) {
        spoiled.incrementAndGet();
      }
      if (way == Mode.HANGING) {
        out.write(head.getBytes(ISO_8859_1));
        out.flush();
        in.transferTo(OutputStream.nullOutputStream());
        return;
      }
      if (isChunked) {
        out.write(head.getBytes(ISO_8859_1));
        chunks(in, out, way);
      } else {
        body(in, out, head, size(lower), way);
      }
      out.flush();
    }
  }

  /** Gives no answer in time. */
  private static void keepWaiting(String answer, OutputStream out) throws IOException {
    Mode way = mode;
    for (int i = 0; mode == way; i++) {
      if (way == Mode.TRICKLING_BLOCKS) {
        out.write(answer.charAt(i % answer.length()));
      } else if (way == Mode.WAITING_BLOCKS) {
        out.write("HTTP/1.1 102 Processing\r\n\r\n".getBytes(ISO_8859_1));
      }
      out.flush();
      LockSupport.parkNanos(AGAIN_NANOS);
    }
  }

  private static String head(InputStream in) throws IOException {
    StringBuilder head = new StringBuilder();
    while (head.length() < 4 || !head.substring(head.length() - 4).equals("\r\n\r\n")) {
      head.append((char) read(in));
    }
    return head.toString();
  }

  private static int read(InputStream in) throws IOException {
    int c = in.read();
    if (c < 0) {
      throw new EOFException();
    }
    return c;
  }

  private static int size(String head) {
    int at = head.indexOf("content-length: ");
    return at < 0 ? 0 : Integer.parseInt(head.substring(at + 16, head.indexOf('\r', at)));
  }

  private static void body(InputStream in, OutputStream out, String head, int size, Mode way)
      throws IOException {
    byte[] bytes = in.readNBytes(size);
    String said = head;
    if (way == Mode.WRONG_LENGTH) {
      said = head.replaceFirst("(?i)content-length: \\d+", "content-length: " + (size - 1));
      bytes = Arrays.copyOf(bytes, size - 1);
    } else if (way == Mode.WRONG_BYTES) {
      bytes[size / 2] ^= 1;
    }
    out.write(said.getBytes(ISO_8859_1));
    out.write(bytes);
  }

  private static void chunks(InputStream in, OutputStream out, Mode way) throws IOException {
    while (true) {
      StringBuilder line = new StringBuilder();
      while (line.length() < 2 || !line.substring(line.length() - 2).equals("\r\n")) {
        line.append((char) read(in));
      }
      int size = Integer.parseInt(line.toString().strip(), 16);
      byte[] bytes = in.readNBytes(size);
      String end = new String(in.readNBytes(2), ISO_8859_1);
      // The first byte of a frame says what it is, and one alone that the node waits.
      boolean isSpoiled = size > 1 && way != Mode.HONEST;
      if (isSpoiled && way == Mode.WRONG_BYTES) {
        bytes[size - 1] ^= 1;
      } else if (isSpoiled) {
        bytes = Arrays.copyOf(bytes, size - 1);
      }
      out.write((Integer.toHexString(bytes.length) + "\r\n").getBytes(ISO_8859_1));
      out.write(bytes);
      out.write(end.getBytes(ISO_8859_1));
      if (size == 0) {
        return;
      }
    }
  }

  /** Owns whatever it is asked for, and has a copy of nothing. */
  private record FromSource(DirectoryStore source) implements PeerService {
    @Override
    public void list(FileName directory, Consumer<List<SourceEntry>> batches) throws FsException {
      List<FileName> names = new ArrayList<>();
      source.list(directory, names::addAll);
      List<SourceEntry> entries = new ArrayList<>();
      for (FileName name : names) {
        SourceStatus status = status(directory.resolve(name));
        entries.add(new SourceEntry(name, status.identity(), status.attributes()));
      }
      batches.accept(entries);
    }

    @Override
    public SourceStatus status(FileName path) throws FsException {
      SourceStatus status = source.status(path);
      if (mode != Mode.OPEN_TO_ALL) {
        return status;
      }
      spoiled.incrementAndGet();
      Attributes own = status.attributes();
      return new SourceStatus(status.identity(), own.withMode(own.mode() | 0777));
    }

    @Override
    public FileName readSymbolicLink(FileName path) throws FsException {
      return source.readSymbolicLink(path);
    }

    @Override
    public Map<FileName, byte[]> extendedAttributes(FileName path) throws FsException {
      return source.extendedAttributes(path);
    }

    @Override
    public HeldBlocks blocks(
        FileName path,
        @Nullable SourceVersion expected,
        @Nullable UUID asker,
        HeldBlocks.Wanted wanted)
        throws PeerException {
      BitSet all = new BitSet();
      all.set(0, HeldBlocks.MOST_UNITS);
      Random random = new Random();
      byte[] noise = new byte[HeldBlocks.MOST_UNITS / Byte.SIZE];
      random.nextBytes(noise);
      List<UUID> strangers = random.longs(16).mapToObj(bits -> new UUID(9, bits)).toList();
      HeldBlocks said =
          switch (mode) {
            case CLAIMED_BLOCKS -> new HeldBlocks(1, those(path), 3, List.of(), List.of());
            case OFFERED_BLOCKS ->
                new HeldBlocks(
                    1, new BitSet(), Integer.MAX_VALUE, strangers, List.of(4096, 1 << 30));
            case RANDOM_BLOCKS ->
                new HeldBlocks(
                    1 << random.nextInt(20),
                    BitSet.valueOf(noise),
                    random.nextInt(1 << 30),
                    strangers,
                    random.ints(16, 0, 64).boxed().toList());
            case NO_BLOCKS, TRICKLING_BLOCKS, WAITING_BLOCKS ->
                new HeldBlocks(1, all, 3, List.of(), List.of());
            default ->
                throw new PeerException(
                    PeerException.Kind.REFUSED, path + " has no copy on this node");
          };
      spoiled.incrementAndGet();
      return said;
    }

    private BitSet those(FileName path) throws PeerException {
      try {
        BitSet those = new BitSet();
        those.set(0, Blocks.count(source.status(path).attributes().version()));
        return those;
      } catch (FsException e) {
        throw new PeerException(PeerException.Kind.FAILED, path + ": " + e.getMessage());
      }
    }

    @Override
    public Content open(
        FileName path, @Nullable SourceVersion expected, boolean onlyCopies, @Nullable UUID asker)
        throws FsException, PeerException {
      if (onlyCopies && mode.isAboutBlocks()) {
        throw new PeerException(PeerException.Kind.REFUSED, path + " has no copy on this node");
      }
      SourceStatus status = source.status(path);
      return new Content() {
        @Override
        public void prove() {}

        @Override
        public SourceStatus status() {
          return status;
        }

        @Override
        public List<UUID> holders() {
          return List.of();
        }

        @Override
        public OptionalInt checksum(int block) {
          return OptionalInt.empty();
        }

        @Override
        public void copyTo(long offset, int size, ReadSink sink) throws FsException {
          sink.expect(size);
          ByteBuffer bytes = ByteBuffer.allocateDirect(size);
          try (SourceFile file = source.open(path)) {
            file.read(offset, bytes);
            sink.accept(new ReadResult.Bytes(bytes.flip()));
          } catch (IOException e) {
            throw new IllegalStateException(e);
          }
        }
      };
    }
  }
}
