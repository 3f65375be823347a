package io.pmfs.writable.remote;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.fuse.system.LinuxOutputCalls;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.OwnedFileSystem;
import io.pmfs.writable.Place;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.EntryConsumer;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import io.pmfs.writable.WritableFileSystem.Opened;
import io.pmfs.writable.WritableSettings;
import io.pmfs.writable.mount.WritableMount;
import java.io.IOException;
import java.lang.reflect.Method;
import java.lang.reflect.Type;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.UUID;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Forged requests to the owner of a writable mount, and to a node, by a member that knows the
 * secret. The source is a directory of this machine; the files beside it must stay untouched.
 */
class ForgedRequestsTest {
  private static final long ROOT = WritableFileSystem.ROOT;
  private static final UUID MEMBER = new UUID(1, 2);

  /** The time limit for a single answer. */
  private static final Duration AT_MOST = Duration.ofSeconds(10);

  private static final List<FileName> NO_NAMES =
      Stream.of(
              "..",
              ".",
              "",
              "/",
              "a/b",
              "../outside/new",
              "../outside/secret",
              "d/../../outside/x",
              "d/",
              "./d",
              "a\0b",
              "\0",
              "x".repeat(256),
              "x".repeat(100_000))
          .map(FileName::of)
          .toList();

  @TempDir Path directory;
  private final OutputCalls calls = new LinuxOutputCalls();
  private WritableMount mount;
  private OwnerServer server;
  private int node;
  private long unique = 2;
  private long era = 1;

  @BeforeEach
  void open() throws Exception {
    for (String name : List.of("source/d", "outside", "state", "place", "node")) {
      Files.createDirectories(directory.resolve(name));
    }
    Files.writeString(directory.resolve("source/d/f"), "content");
    Files.writeString(directory.resolve("outside/secret"), "nobody's");
    mount =
        WritableMount.open(
            new WritableSettings(
                directory.resolve("source"),
                directory.resolve("state"),
                List.of(new Place("ssd", directory.resolve("place"), 1L << 30, 0)),
                new UUID(0, 1),
                false,
                0,
                false,
                "owner",
                16L << 20,
                WritableSettings.COPIERS,
                WritableSettings.PIECE_MILLIS,
                WritableSettings.FRESH_MILLIS,
                WritableSettings.KEPT_NAMES,
                WritableSettings.MOMENT_MILLIS,
                60_000),
            calls);
    server = new OwnerServer(mount);
    node = join(MEMBER, new UUID(0, 9));
  }

  @AfterEach
  void close() {
    mount.close();
  }

  private int join(UUID member, UUID session) throws IOException {
    byte[] body = Message.request().id(member).id(session).text("forger").toBytes();
    Message.from(0, 1, 0, 0, body);
    return Message.Answer.of(server.answer("join", body)).in().joined().node();
  }

  private Caller caller() {
    unique += 2;
    return new Caller(unique, 0, 0, 1);
  }

  private Message.Answer ask(String name, Object... arguments) throws IOException {
    return askFrom(node, name, arguments);
  }

  private Message.Answer askFrom(int from, String name, Object... arguments) throws IOException {
    byte[] body = body(arguments);
    Message.from(from, era, 0, 0, body);
    long begin = System.nanoTime();
    Message.Answer answer = Message.Answer.of(server.answer(name, body));
    assertThat(Duration.ofNanos(System.nanoTime() - begin)).as(name).isLessThan(AT_MOST);
    return answer;
  }

  /** A request with arbitrary arguments. */
  private static byte[] body(Object... arguments) {
    MessageWriter out = Message.request();
    for (Object argument : arguments) {
      put(out, argument);
    }
    return out.toBytes();
  }

  private static void put(MessageWriter out, Object argument) {
    if (argument instanceof Long value) {
      out.number(value);
    } else if (argument instanceof Integer value) {
      out.small(value);
    } else if (argument instanceof Boolean value) {
      out.flag(value);
    } else if (argument instanceof FileName value) {
      out.name(value);
    } else if (argument instanceof byte[] value) {
      out.bytes(value);
    } else if (argument instanceof ByteBuffer value) {
      out.content(value);
    } else if (argument instanceof Caller value) {
      out.caller(value);
    } else if (argument instanceof NewAttributes value) {
      out.newAttributes(value);
    } else if (argument instanceof NodeData.Id value) {
      out.file(value);
    } else if (argument instanceof NodeData.Target value) {
      out.target(value);
    } else if (argument instanceof List<?> values) {
      out.list(values, ForgedRequestsTest::put);
    } else {
      throw new IllegalArgumentException(argument.toString());
    }
  }

  private MessageReader result(String name, Object... arguments) throws Exception {
    Message.Answer answer = ask(name, arguments);
    if (answer.kind() == Message.Kind.FAILURE) {
      throw answer.in().failure();
    }
    return answer.in();
  }

  private void assertRefused(String name, Object... arguments) throws Exception {
    Message.Answer answer = ask(name, arguments);
    assertThat(answer.kind()).as("%s %s", name, Arrays.toString(arguments)).isEqualTo(FAILURE);
  }

  private static final Message.Kind FAILURE = Message.Kind.FAILURE;

  /** The tree below a directory, with contents. */
  private Map<String, String> tree(String top) throws IOException {
    Map<String, String> found = new TreeMap<>();
    try (Stream<Path> all = Files.walk(directory.resolve(top))) {
      for (Path path : (Iterable<Path>) all::iterator) {
        boolean isFile = Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS);
        found.put(
            directory.relativize(path).toString(),
            Files.getAttribute(path, "unix:mode", LinkOption.NOFOLLOW_LINKS)
                + (isFile ? " " + Files.readString(path, StandardCharsets.ISO_8859_1) : ""));
      }
    }
    return found;
  }

  private Map<String, String> outside() throws IOException {
    Map<String, String> found = tree("outside");
    try (Stream<Path> beside = Files.list(directory)) {
      beside.forEach(path -> found.put(path.getFileName().toString(), "beside"));
    }
    return found;
  }

  private Map<String, String> all() throws IOException {
    Map<String, String> found = outside();
    found.putAll(tree("source"));
    return found;
  }

  private void drain() throws Exception {
    for (int i = 0; i < 10 && !mount.drain(10_000); i++) {
      mount.acknowledge();
    }
  }

  private long inodeOf(String... names) throws Exception {
    long at = ROOT;
    for (String name : names) {
      at = result("lookup", at, FileName.of(name)).optional(MessageReader::node).get().inode();
    }
    return at;
  }

  @Test
  void name_thatLeadsOutside_isRefusedByEveryRequest() throws Exception {
    long d = inodeOf("d");
    long f = inodeOf("d", "f");
    FileName good = FileName.of("f");
    Map<String, String> before = all();
    List<FileName> all = new ArrayList<>(NO_NAMES);
    all.add(FileName.of(directory.resolve("outside/new").toString()));
    for (FileName bad : all) {
      for (long in : new long[] {ROOT, d}) {
        assertRefused("lookup", in, bad);
        assertRefused("mkdir", in, bad, 0755, caller());
        assertRefused("mknod", in, bad, 0100644, 0L, caller());
        assertRefused("mknod", in, bad, 0010644, 0L, caller());
        assertRefused("symlink", in, bad, FileName.of("target"), caller());
        assertRefused("link", f, in, bad, caller());
        assertRefused("unlink", in, bad, caller());
        assertRefused("rmdir", in, bad, caller());
        assertRefused("create", in, bad, 0644, OutputCalls.O_RDWR, caller());
        assertRefused("createHere", in, bad, 0644, OutputCalls.O_RDWR, caller());
        assertRefused("rename", in, bad, d, FileName.of("to"), 0, caller());
        assertRefused("rename", d, good, in, bad, 0, caller());
        assertRefused("rename", d, good, in, bad, 2, caller());
      }
    }
    drain();
    assertThat(all()).isEqualTo(before);
  }

  @Test
  void attribute_withANameThatIsNone_isRefused() throws Exception {
    long f = inodeOf("d", "f");
    for (String bad : List.of("", "x", "system.posix_acl_access", "user.a\0b")) {
      assertRefused("setExtendedAttribute", f, FileName.of(bad), new byte[] {1}, 0, caller());
    }
    drain();
    assertThat(outside()).containsKeys("outside", "outside/secret");
  }

  @Test
  void numbers_atTheirLimits_haveAnAnswer() throws Exception {
    Map<String, String> before = outside();
    Opened file =
        result("create", ROOT, FileName.of("big"), 0644, OutputCalls.O_RDWR, caller()).opened();
    long inode = file.node().inode();
    long handle = file.handle();
    for (long at : LIMITS) {
      ask("read", inode, handle, at, 100);
      ask("write", inode, handle, at, ByteBuffer.wrap(new byte[10]), false, false, caller());
      ask("seek", inode, handle, at, OutputCalls.SEEK_DATA);
      ask("list", ROOT, at);
      ask("attributes", at);
      ask("release", at, at);
      ask("resume", inode, handle, at, at, true, caller());
      ask("setAttributes", inode, size(at), caller());
      for (long length : LIMITS) {
        ask("allocate", inode, handle, 0, at, length, caller());
        ask("copyRange", inode, handle, at, inode, handle, length, at, caller());
      }
    }
    for (int size : new int[] {-1, Integer.MIN_VALUE, Integer.MAX_VALUE}) {
      ask("read", inode, handle, 0L, size);
    }
    assertStillServes();
    assertThat(outside()).isEqualTo(before);
  }

  private static final long[] LIMITS = {
    -1, Long.MIN_VALUE, Long.MAX_VALUE, Long.MAX_VALUE - 5, 1L << 62, 1L << 32, 0
  };

  private static NewAttributes size(long size) {
    return new NewAttributes(null, null, null, size, null, null, 0, false);
  }

  /** A program on the owner's node can still create files, and they reach the source. */
  private void assertStillServes() throws Exception {
    String name = "after" + unique;
    mount.mkdir(ROOT, FileName.of(name), 0755, new Caller(unique += 2, 0, 0, 1));
    drain();
    assertThat(directory.resolve("source").resolve(name)).isDirectory();
  }

  @Test
  void request_thatIsRepeated_isMadeOnceAndOldOnesNever() throws Exception {
    byte[] body = body(ROOT, FileName.of("once"), 0755, caller());
    Message.from(node, 5, 0, 0, body);
    byte[] first = server.answer("mkdir", body.clone());
    assertThat(server.answer("mkdir", body.clone())).isEqualTo(first);
    era = 6;
    result("rmdir", ROOT, FileName.of("once"), caller());
    assertThat(Message.Answer.of(server.answer("mkdir", body)).kind())
        .isEqualTo(Message.Kind.GIVEN_UP);
    drain();
    assertThat(directory.resolve("source/once")).doesNotExist();
  }

  @Test
  void handle_ofAnotherNode_writesNothingThere() throws Exception {
    int other = join(new UUID(3, 4), new UUID(0, 10));
    Opened file =
        result("create", ROOT, FileName.of("mine"), 0644, OutputCalls.O_RDWR, caller()).opened();
    long inode = file.node().inode();
    ByteBuffer bytes = ByteBuffer.wrap(new byte[] {'x'});
    Message.Answer answer =
        askFrom(other, "write", inode, file.handle(), 0L, bytes, false, false, caller());
    assertThat(answer.kind()).isEqualTo(FAILURE);
    assertThat(askFrom(12345, "attributes", inode).kind()).isEqualTo(Message.Kind.NOT_JOINED);
  }

  @Test
  void drain_withoutEnd_givesItsThreadBack() throws Exception {
    result("mkdir", ROOT, FileName.of("waits"), 0755, caller());
    ask("drain", Long.MAX_VALUE);
  }

  /** Random bytes. */
  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4})
  void randomBytes_haveAnAnswerOrAreMalformed(long seed) throws Exception {
    Random random = new Random(seed);
    Map<String, String> before = outside();
    List<String> names = names();
    for (int i = 0; i < 400; i++) {
      String name = names.get(random.nextInt(names.size()));
      byte[] body = body(arguments(random, name));
      Message.from(node, 1, 0, 0, body);
      int spoiled = random.nextInt(4);
      for (int k = 0; k < spoiled && body.length > Message.HEAD_BYTES; k++) {
        int at = Message.HEAD_BYTES + random.nextInt(body.length - Message.HEAD_BYTES);
        body[at] = (byte) random.nextInt();
      }
      body = random.nextInt(4) == 0 ? Arrays.copyOf(body, random.nextInt(body.length)) : body;
      try {
        server.answer(name, body);
      } catch (IllegalArgumentException e) {
        assertThat(e.getMessage()).isNotNull();
      }
    }
    assertStillServes();
    assertThat(outside()).as("seed %s", seed).isEqualTo(before);
  }

  /** Well-formed requests with arbitrary values. */
  @ParameterizedTest
  @ValueSource(longs = {11, 12, 13, 14})
  void randomRequests_changeNothingOutside(long seed) throws Exception {
    Random random = new Random(seed);
    Map<String, String> before = outside();
    List<String> names = names();
    for (int i = 0; i < 1_000; i++) {
      String name = names.get(random.nextInt(names.size()));
      Message.Answer answer = ask(name, arguments(random, name));
      assertThat(answer.kind()).isIn(Message.Kind.RESULT, FAILURE);
    }
    assertStillServes();
    assertThat(outside()).as("seed %s", seed).isEqualTo(before);
  }

  /** Requests of a session are tested separately. */
  private static List<String> names() {
    return Arrays.stream(OwnerRequest.values())
        .map(request -> request.title)
        .filter(
            name -> !List.of("join", "endSession", "interrupt", "drain", "forget").contains(name))
        .toList();
  }

  /** Random arguments of the types of the method with that name. */
  private Object[] arguments(Random random, String name) {
    Method method =
        Arrays.stream(OwnedFileSystem.class.getMethods())
            .filter(one -> one.getName().equals(name))
            .findFirst()
            .orElseThrow();
    return Arrays.stream(method.getGenericParameterTypes())
        .filter(type -> type != ReadSink.class && type != EntryConsumer.class)
        .map(type -> argument(random, type))
        .toArray();
  }

  private Object argument(Random random, Type type) {
    if (type == long.class) {
      return random.nextBoolean() ? random.nextInt(20) : LIMITS[random.nextInt(LIMITS.length)];
    }
    if (type == int.class) {
      return random.nextBoolean() ? random.nextInt(01000) : random.nextInt();
    }
    if (type == boolean.class) {
      return random.nextBoolean();
    }
    if (type == FileName.class) {
      List<FileName> good = List.of(FileName.of("d"), FileName.of("f"), FileName.of("n"));
      List<FileName> from = random.nextBoolean() ? good : NO_NAMES;
      return from.get(random.nextInt(from.size()));
    }
    if (type == Caller.class) {
      return random.nextInt(4) == 0
          ? new Caller(random.nextLong(), random.nextInt(), random.nextInt(), random.nextInt())
          : caller();
    }
    if (type == NewAttributes.class) {
      return new NewAttributes(
          random.nextBoolean() ? null : random.nextInt(),
          random.nextBoolean() ? null : random.nextInt(),
          random.nextBoolean() ? null : random.nextInt(),
          random.nextBoolean() ? null : LIMITS[random.nextInt(LIMITS.length)],
          random.nextBoolean() ? null : Instant.ofEpochSecond(random.nextInt()),
          random.nextBoolean() ? null : Instant.MAX,
          random.nextInt(3),
          random.nextBoolean());
    }
    if (type == ByteBuffer.class) {
      return ByteBuffer.wrap(new byte[random.nextInt(10)]);
    }
    if (type == byte[].class) {
      return new byte[random.nextInt(10)];
    }
    return List.of(new NodeData.Id(1, random.nextLong()));
  }

  // ---- requests to a node, which any member can send

  private NodeServer nodeServer() throws FsException {
    NodeFiles files =
        new NodeFiles(
            List.of(new Place("ssd", directory.resolve("node"), 1L << 30, 0)),
            directory.resolve("source"),
            calls,
            InstantSource.system());
    files.use(mount.id());
    files.make(77, 1);
    return new NodeServer(files);
  }

  private static Message.Kind askNode(NodeServer to, String name, Object... arguments)
      throws IOException {
    try {
      return Message.Answer.of(to.answer(name, body(arguments))).kind();
    } catch (IllegalArgumentException e) {
      return FAILURE;
    }
  }

  @Test
  void copy_toAnotherFileThanTheOwnersCopy_isRefused() throws Exception {
    NodeServer to = nodeServer();
    NodeData.Id id = new NodeData.Id(77, 1);
    Files.createSymbolicLink(directory.resolve("source/link"), Path.of("../outside/secret"));
    Files.createSymbolicLink(directory.resolve("source/up"), Path.of("../outside"));
    long secret = inodeNumber("outside/secret");
    long file = inodeNumber("source/d/f");
    Map<String, String> before = all();
    Object[][] targets = {
      {"", "../outside/secret", secret},
      {"..", "secret", secret},
      {"../outside", "secret", secret},
      {"/", directory.resolve("outside/secret").toString().substring(1), secret},
      {directory.resolve("outside").toString(), "secret", secret},
      {"", directory.resolve("outside/secret").toString(), secret},
      {"d/../../outside", "secret", secret},
      {"up", "secret", secret},
      {"", "link", secret},
      // A file of the source, but not an unfinished copy of the owner.
      {"d", "f", file},
    };
    for (Object[] one : targets) {
      Message.Kind kind = FAILURE;
      try {
        NodeData.Target target =
            new NodeData.Target(
                FileName.of((String) one[0]), FileName.of((String) one[1]), (long) one[2], 0, 0);
        kind = askNode(to, "copy", id, target, 0L, 0L);
      } catch (IllegalArgumentException e) {
        assertThat(e.getMessage()).isNotNull();
      }
      assertThat(kind).as("%s", Arrays.toString(one)).isEqualTo(FAILURE);
    }
    assertThat(all()).isEqualTo(before);
  }

  private long inodeNumber(String path) throws IOException {
    return (long) Files.getAttribute(directory.resolve(path), "unix:ino");
  }

  @Test
  void nodesFile_withNumbersThatAreNone_isRefused() throws Exception {
    NodeServer to = nodeServer();
    NodeData.Id id = new NodeData.Id(77, 1);
    for (long at : LIMITS) {
      assertThat(askNode(to, "read", new NodeData.Id(at, at), 0L, 10)).isEqualTo(FAILURE);
      assertThat(askNode(to, "freeze", new NodeData.Id(at, at), false)).isEqualTo(FAILURE);
      askNode(to, "read", id, at, 10);
      assertThat(askNode(to, "read", id, 0L, -1)).isEqualTo(FAILURE);
      assertThat(askNode(to, "read", id, 0L, Integer.MAX_VALUE)).isEqualTo(FAILURE);
    }
    assertThat(askNode(to, "freeze", id, false)).isEqualTo(Message.Kind.RESULT);
  }
}
