package io.pmfs.fuse;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.metadata.PosixAcl;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.StoreStatistics;
import io.pmfs.writable.Interrupts;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.Entry;
import io.pmfs.writable.WritableFileSystem.EntryConsumer;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Each request that changes files, on a file system that records its calls. */
final class WritableOperationsTest {
  private static final byte[] NOTHING = {};
  private static final Opcode[] OPCODES = Opcode.values();
  private static final long FILE = 17;
  private static final long OTHER = 18;
  private static final long HANDLE = 0x1_0000_0007L;

  /** The calls, such as {@code mkdir(1, name, 493, caller)}. */
  private final List<String> calls = new ArrayList<>();

  private int mode = 0100644;
  private int owner = 1000;
  private boolean isOnlyWritten;
  private Instant changed = Instant.ofEpochSecond(1000, 5);
  private @Nullable FsException failure;

  /**
   * The buffer size that a read requests from the sink before it knows the size; 0 for a short
   * answer.
   */
  private int asked;

  /** All permissions for the owner, the owning group and others. */
  private static final byte[] ACCESS_LIST = {
    2, 0, 0, 0, 1, 0, 7, 0, -1, -1, -1, -1, 4, 0, 7, 0, -1, -1, -1, -1, 0x20, 0, 7, 0, -1, -1, -1,
    -1
  };

  private WritableOperations operations;
  private KernelSession session;

  @BeforeEach
  void begin() {
    WritableFileSystem recorder =
        (WritableFileSystem)
            Proxy.newProxyInstance(
                WritableFileSystem.class.getClassLoader(),
                new Class<?>[] {WritableFileSystem.class},
                (proxy, method, arguments) -> answer(method.getName(), arguments));
    operations = new WritableOperations(recorder, 1, true, -1, 24, AccessRule.MODES);
    session = new KernelSession(operations);
  }

  @AfterEach
  void end() {
    session.close();
  }

  private @Nullable Object answer(String method, Object[] arguments) throws Exception {
    calls.add(
        method
            + Arrays.stream(arguments == null ? new Object[0] : arguments)
                .map(WritableOperationsTest::text)
                .collect(Collectors.joining(", ", "(", ")")));
    if (failure != null) {
      throw failure;
    }
    return switch (method) {
      case "lookup" ->
          switch (arguments[1].toString()) {
            case "absent" -> null;
            case "two" -> new Node(OTHER, node().attributes());
            default -> node();
          };
      case "attributes", "mkdir", "mknod", "symlink", "link", "setAttributes" -> node();
      case "open", "create", "createUnnamed" -> new Opened(node(), HANDLE, isOnlyWritten, 0, null);
      case "parent" -> 99L;
      case "readSymbolicLink" -> FileName.of("target");
      case "extendedAttribute" ->
          arguments[1].toString().equals("user.a") ? new byte[] {1, 2} : null;
      case "extendedAttributes" ->
          Map.of(FileName.of("user.a"), new byte[] {1, 2}, PosixAcl.ACCESS, ACCESS_LIST);
      case "statistics" -> new StoreStatistics(4096, 4096, 10, 5, 4, 3, 2, 255);
      case "write" -> ((ByteBuffer) arguments[3]).remaining();
      case "copyRange" -> 70_000L;
      case "seek" -> 4096L;
      case "read" -> {
        ReadSink sink = (ReadSink) arguments[4];
        if (asked > 0) {
          ByteBuffer buffer = sink.buffer(asked);
          sink.expect(asked);
          sink.accept(new ReadResult.Bytes(buffer));
          yield null;
        }
        sink.expect(3);
        ByteBuffer bytes = ByteBuffer.allocateDirect(3).put(new byte[] {7, 8, 9}).flip();
        sink.accept(new ReadResult.Bytes(bytes));
        yield null;
      }
      case "list" -> {
        EntryConsumer entries = (EntryConsumer) arguments[2];
        entries.accept(new Entry(FileName.of("one"), FILE, FileType.REGULAR, 1));
        entries.accept(new Entry(FileName.of("two"), FILE, FileType.REGULAR, 2));
        entries.accept(new Entry(FileName.of("absent"), FILE, FileType.REGULAR, 3));
        yield null;
      }
      default -> null;
    };
  }

  private Node node() {
    return new Node(
        FILE, new Attributes(mode, 1, owner, 1000, 0, 12, 8, Instant.EPOCH, changed, changed));
  }

  private static String text(Object argument) {
    if (argument instanceof ByteBuffer bytes) {
      return bytes.remaining() + " bytes";
    }
    if (argument instanceof byte[] bytes) {
      return Arrays.toString(bytes);
    }
    if (argument instanceof WritableFileSystem.Caller caller) {
      return caller.uid() + ":" + caller.gid() + ":" + caller.pid();
    }
    if (argument instanceof EntryConsumer) {
      return "entries";
    }
    return argument instanceof ReadSink ? "sink" : argument.toString();
  }

  private KernelSession.Answer ask(Opcode opcode, long node, byte[] body) {
    calls.clear();
    return session.ask(opcode, node, body);
  }

  private static byte[] body(Object... parts) {
    ByteBuffer body = ByteBuffer.allocate(4096).order(ByteOrder.nativeOrder());
    for (Object part : parts) {
      if (part instanceof Long number) {
        body.putLong(number);
      } else if (part instanceof Integer number) {
        body.putInt(number);
      } else if (part instanceof String name) {
        body.put(KernelMessages.name(name));
      } else {
        body.put((byte[]) part);
      }
    }
    return Arrays.copyOf(body.array(), body.position());
  }

  @Test
  void changesOfNames_callTheFileSystem() {
    assertThat(ask(Opcode.MKDIR, 1, body(0755, 0022, "d")).body().getLong(0)).isEqualTo(FILE);
    assertThat(calls).containsExactly("mkdir(1, d, 493, 1000:1000:4711)");
    ask(Opcode.MKNOD, 1, body(010644, 0, 0022, 0, "fifo"));
    assertThat(calls).containsExactly("mknod(1, fifo, 4516, 0, 1000:1000:4711)");
    ask(Opcode.SYMLINK, 1, body("name", "../target"));
    assertThat(calls).containsExactly("symlink(1, name, ../target, 1000:1000:4711)");
    ask(Opcode.LINK, 5, body(FILE, "name"));
    assertThat(calls).containsExactly("link(17, 5, name, 1000:1000:4711)");
    ask(Opcode.UNLINK, 5, body("name"));
    assertThat(calls).containsExactly("unlink(5, name, 1000:1000:4711)");
    ask(Opcode.RMDIR, 5, body("name"));
    assertThat(calls).containsExactly("rmdir(5, name, 1000:1000:4711)");
    ask(Opcode.RENAME, 5, body(6L, "from", "to"));
    assertThat(calls).containsExactly("rename(5, from, 6, to, 0, 1000:1000:4711)");
    ask(Opcode.RENAME2, 5, body(6L, 1, 0, "from", "to"));
    assertThat(calls).containsExactly("rename(5, from, 6, to, 1, 1000:1000:4711)");
  }

  @Test
  void lookup_ofAnAbsentName_isRememberedForAMoment() {
    ByteBuffer body = ask(Opcode.LOOKUP, 1, body("absent")).body();

    assertThat(body.getLong(0)).isZero();
    assertThat(body.getLong(16)).isEqualTo(1);
  }

  @Test
  void heartbeat_doesNotReachTheFileSystem() {
    assertThat(ask(Opcode.LOOKUP, 1, body(Bridge.HEARTBEAT)).errno()).isEqualTo(Errno.ENAMETOOLONG);
    assertThat(calls).isEmpty();
    assertThat(ask(Opcode.GETXATTR, 1, KernelMessages.xattr(0, Bridge.PROBE)).errno())
        .isEqualTo(Errno.ENODATA);
    assertThat(calls).isEmpty();
  }

  @Test
  void create_answersWithEntryAndHandle() {
    ByteBuffer body = ask(Opcode.CREATE, 1, body(0102, 0100640, 0022, 0, "new")).body();

    assertThat(calls).containsExactly("create(1, new, 416, 66, 1000:1000:4711)");
    assertThat(body.capacity()).isEqualTo(144);
    assertThat(body.getLong(0)).isEqualTo(FILE);
    assertThat(body.getLong(16)).isEqualTo(1);
    assertThat(body.getLong(128)).isEqualTo(HANDLE);
  }

  @Test
  void create_ofAFileThatIsOnlyWritten_leavesOutThePageCache() {
    assertThat(ask(Opcode.CREATE, 1, body(0101, 0100640, 0022, 0, "old")).body().getInt(136))
        .isZero();
    isOnlyWritten = true;
    assertThat(ask(Opcode.CREATE, 1, body(0101, 0100640, 0022, 0, "new")).body().getInt(136))
        .isEqualTo(KernelProtocol.FOPEN_DIRECT_IO);
  }

  @Test
  void createUnnamed_ignoresTheNameOfTheRequest() {
    ask(Opcode.TMPFILE, 1, body(020200002, 0100600, 0, 0, "/"));

    assertThat(calls).containsExactly("createUnnamed(1, 384, 4259842, 1000:1000:4711)");
  }

  @Test
  void open_ofAnUnchangedFile_keepsTheCache() {
    assertThat(ask(Opcode.OPEN, FILE, body(2, 0)).body().getInt(8)).isZero();
    assertThat(ask(Opcode.OPEN, FILE, body(2, 0)).body().getInt(8))
        .isEqualTo(KernelProtocol.FOPEN_KEEP_CACHE);
    changed = changed.plusNanos(1);
    assertThat(ask(Opcode.OPEN, FILE, body(2, 0)).body().getInt(8)).isZero();
  }

  @Test
  void open_forReading_needsNoFlush() {
    assertThat(ask(Opcode.OPEN, FILE, body(0, 0)).body().getInt(8))
        .isEqualTo(KernelProtocol.FOPEN_NOFLUSH);
  }

  @Test
  void open_thatEmptiesASetUserIdFile_dropsTheBit() {
    mode = 0104755;
    ask(Opcode.OPEN, FILE, body(01001, 1));
    assertThat(calls).hasSize(2);
    assertThat(calls.get(1)).contains("setAttributes(17", "size=0", "clearSetId=true");

    mode = 0100755;
    ask(Opcode.OPEN, FILE, body(01001, 1));
    assertThat(calls).hasSize(1);
  }

  @Test
  void write_passesTheBytesOfTheRequest() {
    ByteBuffer body =
        ask(Opcode.WRITE, FILE, body(HANDLE, 8192L, 5, 4, 0L, 0, 0, new byte[5])).body();

    assertThat(calls)
        .containsExactly("write(17, 4294967303, 8192, 5 bytes, false, true, 1000:1000:4711)");
    assertThat(body.getInt(0)).isEqualTo(5);
  }

  @Test
  void write_passesWhetherTheDescriptorAppendsAtPresent() {
    ask(Opcode.WRITE, FILE, body(HANDLE, 8192L, 5, 0, 0L, 02001, 0, new byte[5]));

    assertThat(calls.get(0)).contains("5 bytes, true, false");
  }

  @Test
  void write_ofMoreThanTheRequestHas_isRefused() {
    assertThat(ask(Opcode.WRITE, FILE, body(HANDLE, 0L, 6, 0, 0L, 0, 0, new byte[5])).errno())
        .isEqualTo(Errno.EINVAL);
    assertThat(ask(Opcode.WRITE, FILE, body(HANDLE, 0L, -1, 0, 0L, 0, 0, new byte[5])).errno())
        .isEqualTo(Errno.EINVAL);
    assertThat(calls).isEmpty();
  }

  @Test
  void write_ofTheLargestSize_fitsTheBuffer() {
    byte[] data = new byte[KernelProtocol.MAX_WRITE_BYTES];
    ByteBuffer body = ByteBuffer.allocate(40 + data.length).order(ByteOrder.nativeOrder());
    body.putLong(HANDLE).putLong(0).putInt(data.length).putInt(0).putLong(0).putLong(0).put(data);

    assertThat(ask(Opcode.WRITE, FILE, body.array()).body().getInt(0)).isEqualTo(data.length);
  }

  @Test
  void openFiles_passTheirHandles() {
    assertThat(ask(Opcode.READ, FILE, body(HANDLE, 1L, 3, 0, 0L, 0, 0)).bytes())
        .containsExactly(7, 8, 9);
    assertThat(calls).containsExactly("read(17, 4294967303, 1, 3, sink)");
    ask(Opcode.FLUSH, FILE, body(HANDLE, 0, 0, 0L));
    assertThat(calls).containsExactly("flush(17, 4294967303, 1000:1000:4711)");
    ask(Opcode.FSYNC, FILE, body(HANDLE, 1, 0));
    assertThat(calls).containsExactly("fsync(17, 4294967303, true, 1000:1000:4711)");
    ask(Opcode.FSYNCDIR, FILE, body(0L, 0, 0));
    assertThat(calls).containsExactly("fsyncDirectory(17, 1000:1000:4711)");
    ask(Opcode.RELEASE, FILE, body(HANDLE, 0, 0, 0L));
    assertThat(calls).containsExactly("release(17, 4294967303)");
    ask(Opcode.FALLOCATE, FILE, body(HANDLE, 1L, 2L, 3, 0));
    assertThat(calls).containsExactly("allocate(17, 4294967303, 3, 1, 2, 1000:1000:4711)");
    ask(Opcode.LSEEK, FILE, body(HANDLE, 9L, 3, 0));
    assertThat(calls).containsExactly("seek(17, 4294967303, 9, 3)");
    ByteBuffer copied =
        ask(Opcode.COPY_FILE_RANGE, FILE, body(HANDLE, 1L, 18L, 8L, 2L, 1L << 40, 0L)).body();
    assertThat(calls)
        .containsExactly("copyRange(17, 4294967303, 1, 18, 8, 2, 2147483647, 1000:1000:4711)");
    assertThat(copied.getInt(0)).isEqualTo(70_000);
    ask(Opcode.COPY_FILE_RANGE_64, FILE, body(HANDLE, 1L, 18L, 8L, 2L, 1L << 40, 0L));
    assertThat(calls.get(0)).contains("1099511627776");
  }

  @Test
  void read_ofTheLargestSize_hasABufferForIt() {
    asked = KernelProtocol.MAX_READ_BYTES;
    byte[] body = body(HANDLE, 0L, KernelProtocol.MAX_READ_BYTES, 0, 0L, 0, 0);

    assertThat(ask(Opcode.READ, FILE, body).bytes()).hasSize(KernelProtocol.MAX_READ_BYTES);
  }

  @Test
  void setattr_passesOnlyWhatIsValid() {
    byte[] body =
        body(
            1 | 8 | 32 | 64 | 2048,
            0,
            HANDLE,
            99L,
            0L,
            11L,
            22L,
            33L,
            44,
            55,
            66,
            0104755,
            0,
            7,
            8,
            0);
    ask(Opcode.SETATTR, FILE, body);

    assertThat(calls)
        .containsExactly(
            "setAttributes(17, NewAttributes[mode=2541, uid=null, gid=null, size=99,"
                + " accessTime=null, modificationTime=1970-01-01T00:00:22.000000055Z,"
                + " handle=4294967303, clearSetId=true], 1000:1000:4711)");
  }

  @Test
  void setattr_ofOwnersAndPresentTime_passesThose() {
    ask(
        Opcode.SETATTR,
        FILE,
        body(2 | 4 | 16 | 128, 0, 0L, 0L, 0L, 11L, 22L, 33L, 44, 55, 66, 0, 0, 7, 8, 0));

    assertThat(calls.get(0))
        .contains("mode=null, uid=7, gid=8, size=null, accessTime=2", "handle=0, clearSetId=false");
  }

  @Test
  void setattr_ofNothingByAnother_changesNothing() {
    byte[] nothing = new byte[88];
    ask(Opcode.SETATTR, FILE, nothing);
    assertThat(calls).hasSize(2).last().asString().startsWith("setAttributes");

    owner = 1001;
    assertThat(ask(Opcode.SETATTR, FILE, nothing).errno()).isNull();
    mode = 0104755;
    assertThat(ask(Opcode.SETATTR, FILE, nothing).errno()).isNull();
    assertThat(calls).hasSize(1);
    mode = 0102745;
    assertThat(ask(Opcode.SETATTR, FILE, nothing).errno()).isNull();
    assertThat(calls).hasSize(1);
  }

  @Test
  void accessList_isTheSourcesWithTheModeOfNow() {
    mode = 0100640;
    byte[] expected = ACCESS_LIST.clone();
    expected[6] = 6;
    expected[14] = 4;
    expected[22] = 0;
    assertThat(
            ask(Opcode.GETXATTR, FILE, KernelMessages.xattr(100, "system.posix_acl_access"))
                .bytes())
        .containsExactly(expected);
  }

  @Test
  void extendedAttributes_areSetAndRemoved() {
    ask(Opcode.SETXATTR, FILE, body(2, 1, "user.x", new byte[] {0, 9}));
    assertThat(calls)
        .containsExactly("setExtendedAttribute(17, user.x, [0, 9], 1, 1000:1000:4711)");
    ask(Opcode.REMOVEXATTR, FILE, body("user.x"));
    assertThat(calls).containsExactly("removeExtendedAttribute(17, user.x, 1000:1000:4711)");
    assertThat(ask(Opcode.GETXATTR, FILE, KernelMessages.xattr(10, "user.a")).bytes())
        .containsExactly(1, 2);
  }

  @Test
  void readdir_listsDotsAndEntries() {
    List<KernelMessages.Entry> entries =
        KernelMessages.entries(
            ask(Opcode.READDIRPLUS, 1, KernelMessages.read(0, 4096)).body(), true);

    assertThat(entries)
        .extracting(KernelMessages.Entry::name)
        .containsExactly(".", "..", "one", "two", "absent");
    assertThat(entries).extracting(KernelMessages.Entry::next).containsExactly(1L, 2L, 3L, 4L, 5L);
    assertThat(entries).extracting(KernelMessages.Entry::inode).startsWith(1L, 99L);
    ask(Opcode.READDIR, 1, KernelMessages.read(3, 4096));
    assertThat(calls).containsExactly("list(1, 1, entries)");
  }

  /** A listing reports the number of a file that has this one in another file system. */
  @Test
  void entries_areThoseThatLookupsFind() {
    List<KernelMessages.Entry> entries =
        KernelMessages.entries(
            ask(Opcode.READDIRPLUS, 1, KernelMessages.read(2, 4096)).body(), true);

    assertThat(entries).extracting(KernelMessages.Entry::nodeId).containsExactly(FILE, OTHER, 0L);
    assertThat(entries).extracting(KernelMessages.Entry::inode).containsExactly(FILE, OTHER, FILE);
  }

  @Test
  void forget_reachesTheFileSystemAndIsNotAnswered() {
    calls.clear();
    assertThat(session.askAll(KernelSession.request(Opcode.FORGET.number(), FILE, body(3L))))
        .isEmpty();
    assertThat(calls).containsExactly("forget(17, 3)");
    calls.clear();
    assertThat(
            session.askAll(
                KernelSession.request(Opcode.BATCH_FORGET.number(), 0, body(2, 0, 5L, 1L, 6L, 2L))))
        .isEmpty();
    assertThat(calls).containsExactly("forget(5, 1)", "forget(6, 2)");
  }

  /** As if another worker had not begun with the request yet. */
  @Test
  void signal_thatOvertakesItsRequest_interruptsIt() {
    Interrupts interrupts = new Interrupts();
    WritableFileSystem fileSystem =
        (WritableFileSystem)
            Proxy.newProxyInstance(
                WritableFileSystem.class.getClassLoader(),
                new Class<?>[] {WritableFileSystem.class, Interrupts.Holder.class},
                (proxy, method, arguments) -> {
                  if (method.getName().equals("interrupts")) {
                    return interrupts;
                  }
                  interrupts.check("waiting");
                  return node();
                });
    byte[] request = KernelSession.request(Opcode.GETATTR.number(), FILE, new byte[16]);
    long unique = ByteBuffer.wrap(request).order(ByteOrder.nativeOrder()).getLong(8);
    byte[] signal = KernelSession.request(Opcode.INTERRUPT.number(), 0, body(unique));
    try (KernelSession other =
        new KernelSession(new WritableOperations(fileSystem, 1, true, -1, 24, AccessRule.MODES))) {
      assertThat(other.askAll(signal)).isEmpty();

      assertThat(other.ask(request).errno()).isEqualTo(Errno.EINTR);
      assertThat(other.ask(request).errno()).isNull();
    }
  }

  @Test
  void resentRequest_hasTheSameNumber() {
    List<Long> numbers = new ArrayList<>();
    byte[] request = KernelSession.request(Opcode.MKDIR.number(), 1, body(0755, 0, "d"));
    byte[] again = request.clone();
    again[15] |= (byte) 0x80; // bit 63 of unique
    WritableFileSystem fileSystem =
        (WritableFileSystem)
            Proxy.newProxyInstance(
                WritableFileSystem.class.getClassLoader(),
                new Class<?>[] {WritableFileSystem.class},
                (proxy, method, arguments) -> {
                  numbers.add(((WritableFileSystem.Caller) arguments[3]).unique());
                  return node();
                });
    try (KernelSession other =
        new KernelSession(new WritableOperations(fileSystem, 1, true, -1, 24, AccessRule.MODES))) {
      other.ask(request);
      assertThat(other.ask(again).unique()).isNegative();
    }

    assertThat(numbers).hasSize(2);
    assertThat(numbers.get(1)).isEqualTo(numbers.get(0)).isPositive();
  }

  @Test
  void failure_isAnsweredWithItsErrno() {
    failure = new FsException(Errno.ENOSPC, "full");

    assertThat(ask(Opcode.WRITE, FILE, body(HANDLE, 0L, 0, 0, 0L, 0, 0)).errno())
        .isEqualTo(Errno.ENOSPC);
    assertThat(ask(Opcode.STATFS, 1, NOTHING).errno()).isEqualTo(Errno.ENOSPC);
  }

  @Test
  void init_acceptsLargeWritesAndLeavesLocksToTheKernel() {
    ByteBuffer body = ask(Opcode.INIT, 0, KernelMessages.init(7, 45, -1)).body();

    assertThat(body.getInt(20)).isEqualTo(1 << 20);
    long flags = Integer.toUnsignedLong(body.getInt(12)) | (long) body.getInt(32) << 32;
    long locksAndWriteback = 1L << 1 | 1L << 10 | 1L << 16;
    assertThat(flags & locksAndWriteback).isZero();
    assertThat(flags & KernelProtocol.HANDLE_KILLPRIV_V2).isNotZero();
    assertThat(flags & KernelProtocol.NO_OPEN_SUPPORT).isZero();
    assertThat(operations.negotiation().canResend()).isTrue();
  }

  @Test
  void requestsThatTheKernelHandlesBetter_areNotImplemented() {
    assertThat(ask(Opcode.ACCESS, FILE, body(4, 0)).errno()).isEqualTo(Errno.ENOSYS);
    assertThat(ask(Opcode.SYNCFS, 1, body(0L)).errno()).isEqualTo(Errno.ENOSYS);
    assertThat(ask(Opcode.IOCTL, FILE, new byte[32]).errno()).isEqualTo(Errno.ENOTTY);
  }

  @Test
  void requestsAtRandom_eachGetOneAnswer() {
    long seed = System.nanoTime();
    System.out.println("WritableOperationsTest seed " + seed);
    Random random = new Random(seed);
    for (int i = 0; i < 5000; i++) {
      Opcode opcode = OPCODES[random.nextInt(OPCODES.length)];
      byte[] body = new byte[random.nextInt(200)];
      random.nextBytes(body);
      for (int at = 0; at < body.length && random.nextBoolean(); at += 8) {
        Arrays.fill(body, at, Math.min(body.length, at + 8), (byte) 0);
      }
      assertThat(session.askAll(KernelSession.request(opcode.number(), random.nextInt(9), body)))
          .as("request %d, %s", i, opcode)
          .hasSize(opcode.isAnswered() ? 1 : 0);
    }
    assertThat(session.endings).hasValue(0);
  }
}
