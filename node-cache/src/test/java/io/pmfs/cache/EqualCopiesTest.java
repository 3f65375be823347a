package io.pmfs.cache;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Equal copies that are kept once. All copies have the same size, of which five fit. */
final class EqualCopiesTest {
  private static final int SIZE = 300_000; // more than is compared at once
  private static final long ROOM = Space.of(SIZE).bytes();
  private static final Duration EVICT_AFTER = Duration.ofHours(1);
  private static final int ADA = 1000;
  private static final int BOB = 1001;
  private static final int EVE = 1002;

  @TempDir private Path directory;

  private final ByteBuffer buffer = ByteBuffer.allocateDirect(256 << 10);
  private Instant now = Instant.parse("2026-01-01T00:00:00Z");
  private SharedCopies copies;

  @BeforeEach
  void open() throws IOException {
    copies = open(true);
  }

  private SharedCopies open(boolean deduplicates) throws IOException {
    CacheRules rules =
        new CacheRules(
            new Space(5 * ROOM, Long.MAX_VALUE),
            EVICT_AFTER,
            deduplicates,
            CacheService.Limits.of(10 * ROOM));
    return SharedCopiesTest.open(directory, new byte[] {1}, rules, () -> now);
  }

  @AfterEach
  void close() {
    copies.close();
  }

  private void openAgain() throws IOException {
    copies.close();
    open();
  }

  private static CopyKey key(long inode) {
    return new CopyKey(0xf5, inode, SIZE, Instant.EPOCH, Instant.EPOCH);
  }

  private static ByteBuffer content(int seed) {
    return ByteBuffer.allocate(SIZE).putInt(SIZE - Integer.BYTES, seed);
  }

  private static int checksum(int seed) {
    CRC32C crc = new CRC32C();
    crc.update(content(seed));
    return (int) crc.getValue();
  }

  /** A copy that its user still holds, and that was not compared yet. */
  private SharedCopy held(long inode, int user, int seed, int checksum) throws IOException {
    SharedCopy copy = Objects.requireNonNull(copies.make(key(inode), user).copy());
    try (FileChannel file = copies.write(copy)) {
      file.write(content(seed), 0);
    }
    copies.complete(copy, checksum);
    return copy;
  }

  private void merge(SharedCopy copy) {
    new Merging(copies, copy.key).run(buffer, bytes -> {});
  }

  private void make(long inode, int user, int seed) throws IOException {
    SharedCopy copy = held(inode, user, seed, checksum(seed));
    merge(copy);
    copies.release(copy, user);
  }

  /** The copy of a file, which it holds for a moment. */
  private @Nullable SharedCopy find(long inode) {
    SharedCopy copy = copies.hold(key(inode), EVE).copy();
    if (copy != null) {
      copies.release(copy, EVE);
    }
    return copy;
  }

  private byte[] read(long inode) throws Exception {
    SharedCopy copy = Objects.requireNonNull(copies.hold(key(inode), EVE).copy());
    if (copies.isFound(copy)) {
      copies.compare(copy);
    }
    try (FileChannel file = SharedCopiesTest.passed(copies, copy, key(inode))) {
      ByteBuffer read = ByteBuffer.allocate(SIZE);
      file.read(read, 0);
      byte[] bytes = new byte[read.flip().remaining()];
      read.get(bytes);
      return bytes;
    } finally {
      copies.release(copy, EVE);
    }
  }

  private long used(int user) {
    CacheReport.OfUser report = copies.room().users().get(user);
    return report == null ? 0 : report.usedBytes() / ROOM;
  }

  private long usedFiles() {
    return copies.room().usedBytes() / ROOM;
  }

  /** How many names there are, and how many files have them. */
  private List<Long> namesAndFiles() throws IOException {
    try (Stream<Path> names = Files.walk(directory.resolve("copies"))) {
      List<Object> inodes = new ArrayList<>();
      for (Path name : (Iterable<Path>) names.filter(Files::isRegularFile)::iterator) {
        inodes.add(Files.getAttribute(name, "unix:ino"));
      }
      return List.of((long) inodes.size(), inodes.stream().distinct().count());
    }
  }

  private Path file(long inode, int seed) {
    return directory.resolve("copies").resolve(key(inode).path(checksum(seed)));
  }

  @Test
  void merge_equalFilesOfTwoUsers_areKeptOnce_andCountForTheFirst() throws Exception {
    make(1, ADA, 7);
    make(2, BOB, 7);

    assertThat(namesAndFiles()).containsExactly(2L, 1L);
    assertThat(used(ADA)).isEqualTo(1);
    assertThat(used(BOB)).isZero();
    assertThat(copies.room().copies()).isEqualTo(2);
    assertThat(copies.room().sharing()).isEqualTo(1);
    assertThat(copies.room().sparedBytes()).isEqualTo(ROOM);
    assertThat(read(2)).isEqualTo(content(7).array());
  }

  @Test
  void merge_sameChecksumAndOtherBytes_areKeptApart_andTheLaterOneIsTheNextsCandidate()
      throws Exception {
    merge(held(1, EVE, 1, checksum(7)));
    make(2, ADA, 7);
    assertThat(namesAndFiles()).containsExactly(2L, 2L);

    make(3, BOB, 7);

    assertThat(namesAndFiles()).containsExactly(3L, 2L);
    assertThat(read(1)).isEqualTo(content(1).array());
    assertThat(read(2)).isEqualTo(content(7).array());
    assertThat(read(3)).isEqualTo(content(7).array());
  }

  @Test
  void merge_replacedFileIsOpen_itsReadersGoOn_andItsRoomCountsUntilTheyClose() throws Exception {
    make(1, ADA, 7);
    SharedCopy open = held(2, BOB, 7, checksum(7));
    try (FileChannel file = SharedCopiesTest.passed(copies, open, key(2))) {
      merge(open);

      assertThat(namesAndFiles()).containsExactly(2L, 1L);
      assertThat(used(BOB)).isEqualTo(1);
      assertThat(usedFiles()).isEqualTo(2);
      // What a reader hears who waited for more of it.
      try (SharedCopies.Present present = copies.present(open, null)) {
        assertThat(present.state()).isEqualTo(SharedCopy.State.WHOLE);
      }
      ByteBuffer read = ByteBuffer.allocate(SIZE);
      assertThat(file.read(read, 0)).isEqualTo(SIZE);
      assertThat(read.flip()).isEqualTo(content(7));
    }
    copies.release(open, BOB);

    assertThat(used(BOB)).isZero();
    assertThat(usedFiles()).isEqualTo(1);
  }

  @Test
  void merge_otherFileCannotBeRead_areKeptApart() throws Exception {
    make(1, ADA, 7);
    try (FileChannel file = FileChannel.open(file(1, 7), StandardOpenOption.WRITE)) {
      file.truncate(SIZE / 2);
    }
    make(2, BOB, 7);
    assertThat(namesAndFiles()).containsExactly(2L, 2L);
    assertThat(copies.room().sharing()).isZero();

    make(3, EVE, 7);

    assertThat(namesAndFiles()).containsExactly(3L, 2L);
    assertThat(read(3)).isEqualTo(content(7).array());
  }

  @Test
  void merge_notAskedFor_keepsCopiesApart() throws IOException {
    copies.close();
    copies = open(false);
    make(1, ADA, 7);
    make(2, BOB, 7);

    assertThat(namesAndFiles()).containsExactly(2L, 2L);
  }

  @Test
  void mayBeEqual_fileOfLessThanABlock_isNot() throws IOException {
    for (int inode = 1; inode <= 2; inode++) {
      CopyKey small = new CopyKey(0xf5, inode, 4095, Instant.EPOCH, Instant.EPOCH);
      SharedCopy copy = Objects.requireNonNull(copies.make(small, ADA).copy());
      copies.complete(copy, 7);
      assertThat(copies.mayBeEqual(small)).isFalse();
    }
  }

  @Test
  void create_fullOfSharedFiles_evictsThemWithAllNames_asOneFreesNothing() throws IOException {
    for (int i = 1; i <= 4; i++) {
      make(i, ADA, i);
      make(100 + i, BOB, i);
      now = now.plusSeconds(60);
    }
    make(50, EVE, 50);
    make(51, EVE, 51);

    assertThat(usedFiles()).isEqualTo(5);
    assertThat(namesAndFiles()).containsExactly(8L, 5L);
    assertThat(find(1)).isNull();
    assertThat(find(101)).isNull();
    assertThat(find(104)).isNotNull();
    assertThat(copies.room().evicted()).isEqualTo(2);
    assertThat(copies.room().sharing()).isEqualTo(3);
    assertThat(copies.room().sparedBytes()).isEqualTo(3 * ROOM);
  }

  @Test
  void create_oneOfTheNamesIsInUse_keepsTheFileForBoth() throws Exception {
    for (int i = 1; i <= 4; i++) {
      make(i, ADA, i);
      make(100 + i, BOB, i);
    }
    SharedCopy open = Objects.requireNonNull(copies.hold(key(101), BOB).copy());
    now = now.plus(EVICT_AFTER).plusSeconds(1);
    find(102);

    make(50, ADA, 50);
    make(51, ADA, 51);

    // The first is open by its second name, and the second was used by its.
    assertThat(find(1)).isNotNull();
    assertThat(find(2)).isNotNull();
    assertThat(find(3)).isNull();
    assertThat(find(103)).isNull();
    assertThat(usedFiles()).isEqualTo(5);
    assertThat(read(101)).isEqualTo(content(1).array());
    assertThat(read(1)).isEqualTo(content(1).array());
    copies.release(open, BOB);
  }

  @Test
  void open_again_countsSharedFilesOnce_forTheSameUser() throws Exception {
    make(1, ADA, 7);
    make(2, BOB, 7);
    make(3, BOB, 8);
    openAgain();

    assertThat(used(ADA)).isEqualTo(1);
    assertThat(used(BOB)).isEqualTo(1);
    assertThat(usedFiles()).isEqualTo(2);
    assertThat(copies.room().copies()).isEqualTo(3);
    assertThat(copies.room().sharing()).isEqualTo(1);
    assertThat(read(1)).isEqualTo(content(7).array());
    assertThat(read(2)).isEqualTo(content(7).array());
    // An earlier run's copies are compared with new ones.
    make(4, EVE, 8);
    assertThat(namesAndFiles()).containsExactly(4L, 2L);
  }

  @Test
  void merge_replacedFileIsKeptOpen_countsAfterItsReleaseAndAfterARestart() throws Exception {
    make(1, ADA, 7);
    SharedCopy open = held(2, BOB, 7, checksum(7));
    try (FileChannel file = SharedCopiesTest.passed(copies, open, key(2))) {
      merge(open);
      copies.release(open, BOB);
      assertThat(usedFiles()).isEqualTo(2);
      openAgain();

      assertThat(usedFiles()).isEqualTo(2);
      ByteBuffer read = ByteBuffer.allocate(SIZE);
      assertThat(file.read(read, 0)).isEqualTo(SIZE);
    }
    copies.lookAgain();

    assertThat(usedFiles()).isEqualTo(1);
    assertThat(directory.resolve("leaving")).isEmptyDirectory();
  }

  @Test
  void open_afterAKillWhileEqualFilesBecameOne_leavesTheOtherNamesAlone() throws Exception {
    make(1, ADA, 7);
    copies.close();
    Files.createLink(directory.resolve("incoming/1"), file(1, 7));
    Files.createLink(directory.resolve("leaving/1"), file(1, 7));
    open();

    assertThat(read(1)).isEqualTo(content(7).array());
    assertThat(usedFiles()).isEqualTo(1);
    assertThat(directory.resolve("incoming")).isEmptyDirectory();
    assertThat(directory.resolve("leaving")).isEmptyDirectory();
  }

  @Test
  void open_indexIsLost_knowsWhichNamesShareAFile() throws Exception {
    make(1, ADA, 7);
    make(2, BOB, 7);
    make(3, BOB, 8);
    copies.close();
    Files.delete(directory.resolve("index/CURRENT"));
    open();

    assertThat(copies.room().copies()).isEqualTo(3);
    assertThat(copies.room().sharing()).isEqualTo(1);
    assertThat(usedFiles()).isEqualTo(2);
    assertThat(read(1)).isEqualTo(content(7).array());
    assertThat(read(2)).isEqualTo(content(7).array());
  }

  @Test
  void compare_sharedFileIsDamaged_dropsAllNames() throws Exception {
    make(1, ADA, 7);
    make(2, BOB, 7);
    Files.write(file(1, 7), content(8).array());
    openAgain();

    SharedCopy damaged = Objects.requireNonNull(copies.hold(key(2), BOB).copy());
    copies.compare(damaged);
    copies.release(damaged, BOB);

    assertThat(find(1)).isNull();
    assertThat(find(2)).isNull();
    assertThat(namesAndFiles()).containsExactly(0L, 0L);
    assertThat(usedFiles()).isZero();
  }

  @Test
  void present_sharedFile_doesNotShowItsReaderWhoElseHasIt() throws Exception {
    make(1, ADA, 7);
    make(2, BOB, 7);
    SharedCopy copy = Objects.requireNonNull(copies.hold(key(2), BOB).copy());
    try (SharedCopies.Present present = copies.present(copy, key(2))) {
      assertThat(present.file()).isNotNull();
      try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
        List<String> shown = new ArrayList<>();
        for (Path link : (Iterable<Path>) open::iterator) {
          if (Files.isSymbolicLink(link)) {
            shown.add(Files.readSymbolicLink(link).toString());
          }
        }
        assertThat(shown)
            .filteredOn(path -> path.startsWith(directory.resolve("copies").toString()))
            .containsExactly(file(2, 7).toString());
      }
    }
  }
}
