package io.pmfs.fuse;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.tuple;

import com.google.common.util.concurrent.Uninterruptibles;
import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.KernelMessages.Entry;
import io.pmfs.fuse.KernelSession.Answer;
import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.fuse.protocol.RequestLatencies;
import io.pmfs.fuse.system.Posix;
import io.pmfs.metadata.Inode;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.FaultyStore;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.UserDefinedFileAttributeView;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;
import org.junit.jupiter.params.provider.ValueSource;

@TestInstance(Lifecycle.PER_CLASS)
@Timeout(value = 120, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class KernelOperationsTest {
  private static final long ROOT = PmfsFileSystem.ROOT;
  private static final byte[] NOTHING = {};
  private static final String XATTR = "user.colour";

  private KernelFixture fixture;
  private Path directory;
  private KernelSession session;
  private boolean hasXattr;

  @BeforeAll
  void open(@TempDir Path directory) throws Exception {
    this.directory = directory;
    fixture = new KernelFixture(directory);
    hasXattr = setXattr(fixture.source.resolve("small"));
    session = fixture.session();
  }

  private static boolean setXattr(Path file) {
    try {
      Files.getFileAttributeView(file, UserDefinedFileAttributeView.class)
          .write(
              "colour", ByteBuffer.wrap("green".getBytes(java.nio.charset.StandardCharsets.UTF_8)));
      return true;
    } catch (java.io.IOException | UnsupportedOperationException e) {
      return false;
    }
  }

  @AfterAll
  void close() {
    session.close();
    fixture.close();
  }

  private @Nullable Errno errno(Opcode opcode, long node, byte[] body) {
    Answer answer = session.ask(opcode, node, body);
    assertThat(answer.all()).hasSize(answer.errno() == null ? answer.length() : 16);
    return answer.errno();
  }

  // Names.

  @Test
  void lookup_ofAFile_answersEntryWithAttributes() throws Exception {
    ByteBuffer body = session.ask(Opcode.LOOKUP, ROOT, KernelMessages.name("small")).body();
    assertThat(body.capacity()).isEqualTo(128);
    assertThat(body.getLong(0)).isEqualTo(fixture.inode("small"));
    assertThat(body.getLong(16)).isEqualTo(1000);
    assertThat(body.getLong(24)).isEqualTo(1000);
    assertThat(body.getLong(40)).isEqualTo(fixture.inode("small"));
    assertThat(body.getLong(48)).isEqualTo(KernelFixture.SMALL_SIZE);
    assertThat(body.getInt(40 + 60) & 0170000).isEqualTo(0100000);
    Files.getLastModifiedTime(fixture.source.resolve("small"));
    assertThat(body.getLong(40 + 32))
        .isEqualTo(
            Files.getLastModifiedTime(fixture.source.resolve("small"))
                .toInstant()
                .getEpochSecond());
  }

  @Test
  void lookup_ofNoName_answersAnEntryWithoutNode() {
    Answer answer = session.ask(Opcode.LOOKUP, ROOT, KernelMessages.name("absent"));
    assertThat(answer.error()).isZero();
    assertThat(answer.body().getLong(0)).isZero();
    assertThat(answer.body().getLong(16)).isEqualTo(1000);
    byte[] rest = answer.bytes();
    Arrays.fill(rest, 16, 24, (byte) 0);
    assertThat(rest).containsOnly(0);
  }

  @Test
  void lookup_inAFile_isNotADirectory() throws Exception {
    assertThat(errno(Opcode.LOOKUP, fixture.inode("small"), KernelMessages.name("x")))
        .isEqualTo(Errno.ENOTDIR);
  }

  @ParameterizedTest
  @CsvSource({"254, ", "255, ", "256, ENAMETOOLONG", "1024, ENAMETOOLONG", "8000, ENAMETOOLONG"})
  void lookup_ofLongNames_failsAbove255Bytes(int size, @Nullable Errno expected) {
    assertThat(errno(Opcode.LOOKUP, ROOT, KernelMessages.name("n".repeat(size))))
        .isEqualTo(expected);
  }

  @Test
  void lookup_ofTheLongestName_findsIt() throws Exception {
    Answer answer =
        session.ask(Opcode.LOOKUP, ROOT, KernelMessages.name(KernelFixture.LONGEST_NAME));
    assertThat(answer.body().getLong(0)).isEqualTo(fixture.inode(KernelFixture.LONGEST_NAME));
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "small", "\u00ff\u00fe"})
  void lookup_withoutNul_isInvalid(String name) {
    byte[] body = KernelMessages.name(name);
    assertThat(errno(Opcode.LOOKUP, ROOT, Arrays.copyOf(body, body.length - 1)))
        .isEqualTo(Errno.EINVAL);
  }

  @Test
  void lookup_ofTheEmptyName_isInvalid() {
    assertThat(errno(Opcode.LOOKUP, ROOT, KernelMessages.name(""))).isEqualTo(Errno.EINVAL);
  }

  @Test
  void lookup_ofANameInBytesThatAreNoText_isAbsent() {
    assertThat(session.ask(Opcode.LOOKUP, ROOT, KernelMessages.name("\u00ff\u0080")).error())
        .isZero();
  }

  // Attributes.

  @Test
  void getattr_ofADirectory_answersItsAttributes() throws Exception {
    long number = fixture.inode("directory");
    ByteBuffer body = session.ask(Opcode.GETATTR, number, new byte[16]).body();
    assertThat(body.capacity()).isEqualTo(104);
    assertThat(body.getLong(0)).isEqualTo(1000);
    assertThat(body.getLong(16)).isEqualTo(number);
    assertThat(body.getInt(16 + 60) & 0170000).isEqualTo(0040000);
  }

  @Test
  void statx_ofAFile_answersItsBasicFields() throws Exception {
    long number = fixture.inode("small");
    ByteBuffer body = session.ask(Opcode.STATX, number, new byte[24]).body();
    assertThat(body.capacity()).isEqualTo(288);
    assertThat(body.getInt(32)).isEqualTo(0x7ff);
    assertThat(body.getLong(32 + 32)).isEqualTo(number);
    assertThat(body.getLong(32 + 40)).isEqualTo(KernelFixture.SMALL_SIZE);
    assertThat(body.getShort(32 + 28) & 0170000).isEqualTo(0100000);
  }

  @Test
  void readlink_ofALink_answersItsTargetWithoutNul() throws Exception {
    assertThat(session.ask(Opcode.READLINK, fixture.inode("link"), NOTHING).bytes())
        .asString(java.nio.charset.StandardCharsets.UTF_8)
        .isEqualTo("small/target");
  }

  @Test
  void readlink_ofAFile_isInvalid() throws Exception {
    assertThat(errno(Opcode.READLINK, fixture.inode("small"), NOTHING)).isEqualTo(Errno.EINVAL);
  }

  @Test
  void statfs_answersEightyBytes() {
    ByteBuffer body = session.ask(Opcode.STATFS, ROOT, NOTHING).body();
    assertThat(body.capacity()).isEqualTo(80);
    assertThat(body.getLong(0)).isPositive();
    assertThat(body.getInt(44)).isEqualTo(255);
  }

  @Test
  void getxattr_bySize_answersSizeValueOrErange() throws Exception {
    org.junit.jupiter.api.Assumptions.assumeTrue(hasXattr, "no user.* attributes here");
    long number = fixture.inode("small");
    Answer size = session.ask(Opcode.GETXATTR, number, KernelMessages.xattr(0, XATTR));
    assertThat(size.body().capacity()).isEqualTo(8);
    assertThat(size.body().getLong(0)).isEqualTo(5);
    assertThat(errno(Opcode.GETXATTR, number, KernelMessages.xattr(4, XATTR)))
        .isEqualTo(Errno.ERANGE);
    for (int room : new int[] {5, 6, 65536, -1}) {
      assertThat(session.ask(Opcode.GETXATTR, number, KernelMessages.xattr(room, XATTR)).bytes())
          .asString(java.nio.charset.StandardCharsets.UTF_8)
          .isEqualTo("green");
    }
    assertThat(errno(Opcode.GETXATTR, number, KernelMessages.xattr(100, "user.none")))
        .isEqualTo(Errno.ENODATA);
  }

  /** For an inode that the file system would reject if asked. */
  @Test
  void getxattr_ofTheProbe_asksTheFileSystemNothing() {
    byte[] probe = KernelMessages.xattr(100, Bridge.PROBE);
    assertThat(errno(Opcode.GETXATTR, 987_654_321L, probe)).isEqualTo(Errno.ENODATA);
    assertThat(errno(Opcode.GETXATTR, 987_654_321L, KernelMessages.xattr(100, XATTR)))
        .isEqualTo(Errno.ESTALE);
  }

  @Test
  void listxattr_bySize_answersSizeNamesOrErange() throws Exception {
    org.junit.jupiter.api.Assumptions.assumeTrue(hasXattr, "no user.* attributes here");
    long number = fixture.inode("small");
    int size = session.ask(Opcode.LISTXATTR, number, KernelMessages.xattr(0)).body().getInt(0);
    Answer names = session.ask(Opcode.LISTXATTR, number, KernelMessages.xattr(size));
    assertThat(names.bytes()).hasSize(size);
    assertThat(new String(names.bytes(), java.nio.charset.StandardCharsets.UTF_8))
        .contains(XATTR + "\0");
    assertThat(errno(Opcode.LISTXATTR, number, KernelMessages.xattr(size - 1)))
        .isEqualTo(Errno.ERANGE);
  }

  // Contents.

  @Test
  void read_ofEveryRange_answersTheBytesThatAreThere() throws Exception {
    long number = fixture.inode("small");
    byte[] content = KernelFixture.content(KernelFixture.SMALL_SIZE);
    int end = KernelFixture.SMALL_SIZE;
    for (int offset : new int[] {0, 1, 7, end - 1, end, end + 1, end + 5000}) {
      for (int size : new int[] {0, 1, 8, end - 1, end, end + 1, 4096, 1 << 20}) {
        byte[] expected =
            Arrays.copyOfRange(content, Math.min(offset, end), Math.min(offset + size, end));
        assertThat(session.ask(Opcode.READ, number, KernelMessages.read(offset, size)).bytes())
            .as("%d bytes at %d", size, offset)
            .isEqualTo(expected);
      }
    }
  }

  @Test
  void read_ofALargeFile_fromSourceFetchAndTier_answersTheSame() throws Exception {
    long number = fixture.inode("large");
    byte[] content = KernelFixture.content(KernelFixture.LARGE_SIZE);
    for (int round = 0; round < 3; round++) {
      for (int offset = 0; offset < content.length; offset += 300_001) {
        int size = 1 << 20;
        byte[] expected =
            Arrays.copyOfRange(content, offset, Math.min(offset + size, content.length));
        Answer answer = session.ask(Opcode.READ, number, KernelMessages.read(offset, size));
        assertThat(answer.error()).isZero();
        assertThat(Arrays.equals(answer.bytes(), expected))
            .as("bytes at %d, round %d", offset, round)
            .isTrue();
      }
      fixture.awaitStaged();
    }
    assertThat(fixture.copies.tiers().get(0).status().copies()).isPositive();
    assertThat(session.piped).as("answers from the copy").hasPositiveValue();
  }

  @Test
  void read_ofACopyThatWasCutShort_isAnsweredFromTheSource() throws Exception {
    long number = fixture.inode("large");
    byte[] content = KernelFixture.content(KernelFixture.LARGE_SIZE);
    int size = 200_000;
    stageAndRead(number, size);
    int pipedBefore = session.piped.get();
    try (var files = Files.walk(directory.resolve("tier"))) {
      Path copy =
          files.filter(f -> f.toFile().length() == content.length).findFirst().orElseThrow();
      try (var file = FileChannel.open(copy, StandardOpenOption.WRITE)) {
        file.truncate(100_001);
      }
    }
    for (int round = 0; round < 3; round++) {
      assertThat(stageAndRead(number, size)).isEqualTo(Arrays.copyOf(content, size));
    }
    assertThat(session.piped).as("the pipe is of use again").hasValueGreaterThan(pipedBefore);
  }

  private byte[] stageAndRead(long number, int size) {
    session.ask(Opcode.READ, number, KernelMessages.read(0, size));
    fixture.awaitStaged();
    return session.ask(Opcode.READ, number, KernelMessages.read(0, size)).bytes();
  }

  @ParameterizedTest
  @CsvSource({
    "-1, 4096, EINVAL",
    "-9223372036854775808, 1, EINVAL",
    "0, -1, EINVAL",
    "0, -2147483648, EINVAL",
    "0, 1048577, EINVAL",
    "9223372036854775807, 4096, ",
    "9223372036854775807, 1048576, ",
  })
  void read_atTheEdges_neverReadsWrong(long offset, int size, @Nullable Errno expected)
      throws Exception {
    Answer answer =
        session.ask(Opcode.READ, fixture.inode("large"), KernelMessages.read(offset, size));
    assertThat(answer.errno()).isEqualTo(expected);
    assertThat(answer.bytes()).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({"directory, EISDIR", "link, EINVAL", "fifo, EINVAL", "empty, "})
  void read_ofWhatIsNoFile_fails(String name, @Nullable Errno expected) throws Exception {
    assertThat(errno(Opcode.READ, fixture.inode(name), KernelMessages.read(0, 4096)))
        .isEqualTo(expected);
  }

  // Listings.

  private List<Entry> list(long number, long offset, int size, boolean plus) {
    Answer answer =
        session.ask(
            plus ? Opcode.READDIRPLUS : Opcode.READDIR, number, KernelMessages.read(offset, size));
    assertThat(answer.error()).isZero();
    assertThat(answer.all().length - 16).isLessThanOrEqualTo(size);
    return KernelMessages.entries(answer.body(), plus);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void list_ofADirectory_hasDotsAndEachNameOnce(boolean plus) throws Exception {
    long number = fixture.inode("directory");
    List<Entry> entries = list(number, 0, 1 << 20, plus);
    List<String> names = new ArrayList<>(List.of(".", ".."));
    try (var files = Files.list(fixture.source.resolve("directory"))) {
      files.forEach(file -> names.add(file.getFileName().toString()));
    }
    assertThat(entries.stream().map(Entry::name)).containsExactlyInAnyOrderElementsOf(names);
    assertThat(entries.stream().map(Entry::next)).doesNotHaveDuplicates().doesNotContain(0L);
    for (Entry entry : entries.subList(2, entries.size())) {
      assertThat(entry.type()).isEqualTo(8);
      if (plus) {
        assertThat(entry.nodeId()).isEqualTo(entry.inode());
        assertThat(entry.attributeInode()).isEqualTo(entry.inode());
        assertThat(entry.mode() & 0170000).isEqualTo(0100000);
      }
    }
    if (plus) {
      assertThat(entries.get(0).nodeId()).as("a lookup of .").isZero();
      assertThat(entries.get(1).nodeId()).as("a lookup of ..").isZero();
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void list_resumedAtEveryOffset_equalsTheRest(boolean plus) throws Exception {
    long number = fixture.inode("directory");
    List<Entry> all = list(number, 0, 1 << 20, plus);
    for (int i = 0; i < all.size(); i++) {
      assertThat(list(number, all.get(i).next(), 1 << 20, plus))
          .as("after %s", all.get(i))
          .isEqualTo(all.subList(i + 1, all.size()));
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {408, 409, 512, 1000, 4096, 65536})
  void list_inSmallPieces_equalsTheWhole(int size) throws Exception {
    for (boolean plus : new boolean[] {false, true}) {
      long number = fixture.inode("directory");
      List<Entry> pieces = new ArrayList<>();
      while (true) {
        long offset = pieces.isEmpty() ? 0 : pieces.get(pieces.size() - 1).next();
        List<Entry> piece = list(number, offset, size, plus);
        if (piece.isEmpty()) {
          break;
        }
        pieces.addAll(piece);
      }
      assertThat(pieces).isEqualTo(list(number, 0, 1 << 20, plus));
    }
  }

  @Test
  void list_withRoomForLessThanAnEntry_isEmpty() throws Exception {
    for (int size = 0; size < 32; size++) {
      assertThat(list(fixture.inode("directory"), 0, size, false)).isEmpty();
    }
    for (int size = 0; size < 160; size++) {
      assertThat(list(fixture.inode("directory"), 0, size, true)).isEmpty();
    }
    assertThat(list(fixture.inode("directory"), 0, 160, true)).hasSize(1);
  }

  @ParameterizedTest
  @CsvSource({"-1, 4096, EINVAL", "0, -1, EINVAL", "9223372036854775807, 4096, "})
  void list_atTheEdges_failsOrIsEmpty(long offset, int size, @Nullable Errno expected)
      throws Exception {
    Answer answer =
        session.ask(Opcode.READDIR, fixture.inode("directory"), KernelMessages.read(offset, size));
    assertThat(answer.errno()).isEqualTo(expected);
    assertThat(answer.bytes()).isEmpty();
  }

  @Test
  void list_ofAFile_isNotADirectory() throws Exception {
    assertThat(errno(Opcode.READDIR, fixture.inode("small"), KernelMessages.read(0, 4096)))
        .isEqualTo(Errno.ENOTDIR);
  }

  // Everything else.

  @ParameterizedTest
  @EnumSource(
      names = {
        "SETATTR",
        "SYMLINK",
        "MKNOD",
        "MKDIR",
        "UNLINK",
        "RMDIR",
        "RENAME",
        "RENAME2",
        "LINK",
        "WRITE",
        "SETXATTR",
        "REMOVEXATTR",
        "CREATE",
        "FALLOCATE",
        "COPY_FILE_RANGE",
        "TMPFILE"
      })
  void mutation_isRefused(Opcode opcode) {
    assertThat(errno(opcode, ROOT, new byte[100])).isEqualTo(Errno.EROFS);
    assertThat(errno(opcode, ROOT, NOTHING)).isEqualTo(Errno.EROFS);
  }

  @ParameterizedTest
  @EnumSource(names = {"OPEN", "FLUSH", "FSYNC", "FSYNCDIR", "SYNCFS", "ACCESS"})
  void bookkeeping_isLeftToTheKernel(Opcode opcode) {
    assertThat(errno(opcode, ROOT, new byte[16])).isEqualTo(Errno.ENOSYS);
  }

  @ParameterizedTest
  @EnumSource(names = {"RELEASE", "RELEASEDIR", "DESTROY"})
  void end_isConfirmed(Opcode opcode) {
    Answer answer = session.ask(opcode, ROOT, new byte[24]);
    assertThat(answer.error()).isZero();
    assertThat(answer.bytes()).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 7, 19, 31, 33, 37, 40, 41, 48, 49, 53, 200, 4096, -1, Integer.MIN_VALUE})
  void unknownOpcode_isNotImplemented(int opcode) {
    Answer answer = session.ask(KernelSession.request(opcode, ROOT, new byte[40]));
    assertThat(answer.errno()).isEqualTo(Errno.ENOSYS);
  }

  @ParameterizedTest
  @EnumSource(
      names = {
        "LOOKUP",
        "GETATTR",
        "STATX",
        "READLINK",
        "READ",
        "READDIR",
        "READDIRPLUS",
        "LSEEK",
        "GETXATTR",
        "LISTXATTR"
      })
  void unknownInode_isStale(Opcode opcode) {
    byte[] body =
        switch (opcode) {
          case LOOKUP -> KernelMessages.name("x");
          case GETXATTR -> KernelMessages.xattr(100, XATTR);
          case LISTXATTR -> KernelMessages.xattr(100);
          case READ -> KernelMessages.read(0, 4096);
          case READDIR, READDIRPLUS -> KernelMessages.read(2, 4096);
          case LSEEK -> KernelMessages.lseek(0, Posix.SEEK_DATA);
          default -> new byte[24];
        };
    for (long node : new long[] {0, 987_654_321L, 1L << 47, 1L << 62, -1, Long.MIN_VALUE}) {
      assertThat(errno(opcode, node, body)).as("node %d", node).isEqualTo(Errno.ESTALE);
    }
  }

  @ParameterizedTest
  @EnumSource(names = {"FORGET", "BATCH_FORGET", "INTERRUPT"})
  void notice_isNotAnswered(Opcode opcode) {
    for (int size : new int[] {0, 1, 8, 40}) {
      byte[] request = KernelSession.request(opcode.number(), ROOT, new byte[size]);
      assertThat(session.askAll(request)).isEmpty();
    }
    assertThat(session.ask(Opcode.GETATTR, ROOT, new byte[16]).error()).isZero();
  }

  @ParameterizedTest
  @EnumSource(
      mode = Mode.EXCLUDE,
      names = {"FORGET", "BATCH_FORGET", "INTERRUPT"})
  void request_cutShortAnywhere_isInvalid(Opcode opcode) {
    byte[] whole = KernelSession.request(opcode.number(), ROOT, fullBody(opcode));
    for (int size = 0; size < whole.length; size++) {
      List<Answer> answers = session.askAll(Arrays.copyOf(whole, size));
      if (size < KernelProtocol.IN_HEADER_SIZE) {
        assertThat(answers).as("%d bytes", size).isEmpty();
      } else {
        assertThat(answers).as("%d bytes", size).hasSize(1);
        assertThat(answers.get(0).errno()).as("%d bytes", size).isEqualTo(Errno.EINVAL);
      }
    }
  }

  /** Truncated too, but with a matching length: only needed bytes may be missed. */
  @ParameterizedTest
  @EnumSource(
      mode = Mode.EXCLUDE,
      names = {"FORGET", "BATCH_FORGET", "INTERRUPT"})
  void request_shorterThanItsStructure_getsOneAnswer(Opcode opcode) {
    byte[] body = fullBody(opcode);
    for (int size = 0; size <= body.length; size++) {
      Answer answer =
          session.ask(KernelSession.request(opcode.number(), ROOT, Arrays.copyOf(body, size)));
      assertThat(answer.length()).isEqualTo(answer.all().length);
      assertThat(answer.errno()).as("%d bytes", size).isNotEqualTo(Errno.EIO);
    }
  }

  private static byte[] fullBody(Opcode opcode) {
    return switch (opcode) {
      case LOOKUP -> KernelMessages.name("small");
      case GETXATTR -> KernelMessages.xattr(100, XATTR);
      case LISTXATTR -> KernelMessages.xattr(100);
      case READ, READDIR, READDIRPLUS -> KernelMessages.read(0, 4096);
      case INIT -> KernelMessages.init(7, 40, -1);
      case LSEEK -> KernelMessages.lseek(0, Posix.SEEK_DATA);
      default -> new byte[64];
    };
  }

  // INIT.

  private Answer init(int major, int minor, long flags) {
    return session.ask(Opcode.INIT, 0, KernelMessages.init(major, minor, flags));
  }

  @Test
  void init_ofAKernelThatOffersAll_takesWhatIsUsefulAndNoPassthrough() {
    ByteBuffer body = init(7, 45, -1).body();
    assertThat(body.capacity()).isEqualTo(64);
    assertThat(body.getInt(0)).isEqualTo(7);
    assertThat(body.getInt(4)).isGreaterThanOrEqualTo(23);
    assertThat(body.getInt(8)).as("max_readahead").isEqualTo(128 * 1024);
    long expected =
        1L | 1L << 5 | 1L << 13 | 1L << 17 | 1L << 18 | 1L << 22 | 1L << 23 | 1L << 24 | 1L << 25
            | 1L << 30;
    assertThat(Integer.toUnsignedLong(body.getInt(12))).as("flags").isEqualTo(expected);
    assertThat(body.getShort(16)).as("max_background").isEqualTo((short) 56);
    assertThat(body.getShort(18)).as("congestion_threshold").isEqualTo((short) 0xffff);
    assertThat(body.getInt(20)).as("max_write").isGreaterThanOrEqualTo(4096);
    assertThat(body.getInt(24)).as("time_gran").isEqualTo(1);
    assertThat(body.getShort(28)).as("max_pages").isEqualTo((short) 256);
    assertThat(body.getInt(32)).as("flags2").isEqualTo(1 << (39 - 32));
    assertThat(body.getInt(36)).as("max_stack_depth").isZero();
    for (int at = 40; at < 64; at++) {
      assertThat(body.get(at)).as("unused byte %d", at).isZero();
    }
  }

  @Test
  void init_withoutInitExt_ignoresTheSecondFlags() {
    long offered = 1L << 13 | 0xffffffffL << 32;
    ByteBuffer body = init(7, 31, offered).body();
    assertThat(body.getInt(12)).isEqualTo(1 << 13);
    assertThat(body.getInt(32)).isZero();
  }

  @Test
  void init_neverTakesWhatWasNotOffered() {
    for (int bit = 0; bit < 64; bit++) {
      ByteBuffer body = init(7, 45, 1L << bit | 1L << 30).body();
      long taken =
          Integer.toUnsignedLong(body.getInt(12)) | Integer.toUnsignedLong(body.getInt(32)) << 32;
      assertThat(taken & ~(1L << bit | 1L << 30)).as("bit %d", bit).isZero();
    }
  }

  @ParameterizedTest
  @CsvSource({"8, 0", "8, 45", "100, 1", "2147483647, 0"})
  void init_ofANewerMajor_namesOurs(int major, int minor) {
    ByteBuffer body = init(major, minor, -1).body();
    assertThat(body.getInt(0)).isEqualTo(7);
    assertThat(body.getInt(12)).as("flags").isZero();
  }

  @ParameterizedTest
  @CsvSource({"6, 45", "0, 0", "-1, 31", "7, 22", "7, 0", "7, -1"})
  void init_ofAnOlderVersion_isRefused(int major, int minor) {
    assertThat(init(major, minor, -1).errno()).isEqualTo(Errno.EPROTO);
  }

  @Test
  void init_ofTheOldestMinorInItsOldSize_isAnswered() {
    byte[] body = Arrays.copyOf(KernelMessages.init(7, 23, 1L << 13), 16);
    Answer answer = session.ask(Opcode.INIT, 0, body);
    assertThat(answer.error()).isZero();
    assertThat(answer.body().getInt(12)).isEqualTo(1 << 13);
  }

  @Test
  void init_takesOnlyWhatMayCount() throws Exception {
    long before51 = (1L << 22) - 1;
    KernelOperations operations =
        new KernelOperations(fixture.fileSystem, 1000, null, before51, 56, AccessRule.MODES);
    try (KernelSession own = new KernelSession(operations)) {
      assertThat(operations.negotiation().isNegotiated()).isFalse();
      ByteBuffer body = own.ask(Opcode.INIT, 0, KernelMessages.init(7, 45, -1)).body();
      assertThat(body.getInt(12)).isEqualTo(1 | 1 << 5 | 1 << 13 | 1 << 17 | 1 << 18);
      assertThat(body.getInt(32)).isZero();
      assertThat(operations.negotiation().isNegotiated()).isTrue();
      assertThat(operations.negotiation().canResend()).isFalse();
      assertThat(own.ask(Opcode.OPEN, ROOT, new byte[8]).errno()).isEqualTo(Errno.ENOSYS);
      // Kernels before 5.1 return ENOSYS to the program that opens a directory.
      Answer opened = own.ask(Opcode.OPENDIR, ROOT, new byte[8]);
      assertThat(opened.body().capacity()).isEqualTo(16);
      assertThat(opened.body().getLong(0)).isZero();
      assertThat(opened.body().getInt(8)).isEqualTo(1 << 1 | 1 << 3);
      assertThat(opened.body().getInt(12)).isZero();
    }
  }

  /** Another node described it as of another version than the source has. */
  @Test
  void file_ofAnotherVersion_isAnotherNodeToTheKernel(@TempDir Path directory) throws Exception {
    try (KernelFixture secondHand = new KernelFixture(directory);
        KernelSession own = secondHand.session()) {
      secondHand.faulty.beSecondHand();
      long small = secondHand.inode("small");
      openUntilSettled(own, small);
      assertThat(own.ask(Opcode.OPEN, small, new byte[8]).errno()).isEqualTo(Errno.ENOSYS);
      byte[] name = KernelMessages.name("small");
      long former = own.ask(Opcode.LOOKUP, ROOT, name).body().getLong(0);
      assertThat(former).isEqualTo(small);

      byte[] now = KernelFixture.content(2000);
      Files.write(secondHand.source.resolve("small"), now);
      secondHand.fileSystem.lookAgain(small);
      requireStale(own, former);
      assertThat(own.notices)
          .map(notice -> HexFormat.of().formatHex(notice, 0, 16))
          .containsExactly("28000000" + "02000000" + "0000000000000000");
      ByteBuffer notice = ByteBuffer.wrap(own.notices.get(0)).order(ByteOrder.nativeOrder());
      assertThat(notice.getLong(16)).isEqualTo(former);
      assertThat(notice.getLong(24)).as("no pages").isNegative();

      ByteBuffer entry = own.ask(Opcode.LOOKUP, ROOT, name).body();
      long node = entry.getLong(0);
      assertThat(node).isEqualTo(NodeNumber.of(small, (byte) 1));
      assertThat(entry.getLong(40)).as("inode number").isEqualTo(small);
      assertThat(own.ask(Opcode.GETATTR, node, new byte[16]).error()).isZero();
      byte[] whole = KernelMessages.read(0, 4096);
      assertThat(own.ask(Opcode.READ, node, whole).bytes()).isEqualTo(now);
      // The kernel may have processed an older answer after that one, or not yet dropped the node.
      requireStale(own, former);
    }
  }

  private static void requireStale(KernelSession session, long node) {
    byte[] whole = KernelMessages.read(0, 4096);
    assertThat(session.ask(Opcode.READ, node, whole).errno()).isEqualTo(Errno.ESTALE);
    assertThat(session.ask(Opcode.GETATTR, node, new byte[16]).errno()).isEqualTo(Errno.ESTALE);
    byte[] data = KernelMessages.lseek(0, Posix.SEEK_DATA);
    assertThat(session.ask(Opcode.LSEEK, node, data).errno()).isEqualTo(Errno.ESTALE);
  }

  @Test
  void attributes_whileTheVersionChanges_areOfTheNodesVersion(@TempDir Path directory)
      throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(3);
    try (KernelFixture secondHand = new KernelFixture(directory);
        KernelSession one = secondHand.session();
        KernelSession other = secondHand.session()) {
      secondHand.faulty.beSecondHand();
      long small = secondHand.inode("small");
      assertThat(one.ask(Opcode.GETATTR, small, new byte[16]).error()).isZero();
      Files.write(secondHand.source.resolve("small"), KernelFixture.content(2000));
      CountDownLatch asked = new CountDownLatch(1);
      CountDownLatch answered = new CountDownLatch(1);
      secondHand
          .faulty
          .on(FaultyStore.Operation.STATUS)
          .of("small")
          .run(
              path -> {
                asked.countDown();
                assertThat(Uninterruptibles.awaitUninterruptibly(answered, 50, TimeUnit.SECONDS))
                    .isTrue();
              });
      Future<Inode> changing = threads.submit(() -> secondHand.fileSystem.lookAgain(small));
      assertThat(asked.await(50, TimeUnit.SECONDS)).isTrue();
      Future<Answer> attributes =
          threads.submit(() -> one.ask(Opcode.GETATTR, small, new byte[16]));
      Future<Answer> entry =
          threads.submit(() -> other.ask(Opcode.LOOKUP, ROOT, KernelMessages.name("small")));
      Await.until("both wait", () -> one.waiting(0) != null && other.waiting(0) != null);
      answered.countDown();
      changing.get();

      assertThat(attributes.get().errno()).isEqualTo(Errno.ESTALE);
      assertThat(entry.get().body().getLong(0)).isEqualTo(NodeNumber.of(small, (byte) 1));
      assertThat(entry.get().body().getLong(48)).as("size").isEqualTo(2000);
    } finally {
      threads.shutdownNow();
    }
  }

  private static void openUntilSettled(KernelSession session, long inode) {
    for (int i = 0; i <= 1000; i++) {
      assertThat(openFlags(session, inode)).isEqualTo(KernelProtocol.FOPEN_KEEP_CACHE);
    }
  }

  private static int openFlags(KernelSession session, long inode) {
    Answer opened = session.ask(Opcode.OPEN, inode, new byte[8]);
    assertThat(opened.error()).isZero();
    return opened.body().getInt(8);
  }

  @Test
  void opendir_isLeftToTheKernelThatOffersIt() throws Exception {
    try (KernelSession own = fixture.session()) {
      assertThat(own.ask(Opcode.INIT, 0, KernelMessages.init(7, 29, 1L << 24)).error()).isZero();
      assertThat(own.ask(Opcode.OPENDIR, ROOT, new byte[8]).errno()).isEqualTo(Errno.ENOSYS);
    }
  }

  // Answers that the kernel does not accept.

  @Test
  void answer_refusedOnce_isGivenAsAnError() throws Exception {
    try (KernelSession own = fixture.session()) {
      own.refusals.set(1);
      Answer answer = own.ask(Opcode.GETATTR, ROOT, new byte[16]);
      assertThat(answer.errno()).isEqualTo(Errno.ENOMEM);
      assertThat(own.ask(Opcode.GETATTR, ROOT, new byte[16]).error()).isZero();
      assertThat(own.endings).hasValue(0);
    }
  }

  @Test
  void answer_refusedAgain_endsTheSessionAndNotTheWorker() throws FsException {
    try (KernelSession own = fixture.session()) {
      own.refusals.set(2);
      assertThat(own.askAll(KernelSession.request(Opcode.GETATTR.number(), ROOT, new byte[16])))
          .isEmpty();
      assertThat(own.endings).hasValue(1);
      assertThat(own.isWorking()).isTrue();
      assertThat(own.ask(Opcode.GETATTR, ROOT, new byte[16]).error()).isZero();
    }
  }

  @Test
  void handle_requests_areTimedByOperationWhateverTheirAnswer() throws Exception {
    RequestLatencies latencies = new RequestLatencies();
    KernelOperations operations =
        new KernelOperations(fixture.fileSystem, 1000, null, -1, 56, AccessRule.MODES);
    try (KernelSession timed = new KernelSession(operations, latencies)) {
      timed.ask(Opcode.GETATTR, ROOT, NOTHING);
      timed.ask(Opcode.READ, fixture.inode("small"), KernelMessages.read(0, 100));
      timed.ask(Opcode.READ, 1L << 40, KernelMessages.read(0, 100));
    }

    assertThat(latencies.snapshot())
        .extracting(RequestLatencies.Operation::operation, RequestLatencies.Operation::count)
        .containsExactly(tuple("getattr", 1L), tuple("read", 2L));
  }
}
