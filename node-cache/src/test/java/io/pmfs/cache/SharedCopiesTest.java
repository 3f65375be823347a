package io.pmfs.cache;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.cache.CacheMessage.Refusal;
import io.pmfs.fuse.system.PassedFile;
import io.pmfs.table.Faults;
import io.pmfs.table.StateException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.rocksdb.RocksDBException;

/** Space and shares. Ten copies fit, all of the same size. */
final class SharedCopiesTest {
  private static final int SIZE = 4096;
  private static final Duration EVICT_AFTER = Duration.ofHours(1);
  private static final long UNLIMITED_FILES = Long.MAX_VALUE;
  private static final byte[] BOOT = {1};
  private static final CacheService.Limits LIMITS = CacheService.Limits.of(20 * SIZE);
  private static final int ADA = 1000;
  private static final int BOB = 1001;
  private static final int EVE = 1002;

  @TempDir private Path directory;

  private Instant now = Instant.parse("2026-01-01T00:00:00Z");
  private SharedCopies copies;

  @BeforeEach
  void open() throws IOException {
    copies = open(directory, UNLIMITED_FILES, LIMITS);
  }

  @AfterEach
  void close() {
    copies.close();
  }

  private void openAgain() throws IOException {
    copies.close();
    open();
  }

  private SharedCopies open(Path at, long files, CacheService.Limits limits) throws IOException {
    Space capacity = new Space(10 * SIZE, files);
    return open(at, BOOT, new CacheRules(capacity, EVICT_AFTER, limits), () -> now);
  }

  /** Opens copies as the service does. */
  static SharedCopies open(Path directory, byte[] boot, CacheRules rules, InstantSource clock)
      throws IOException {
    CopyFiles files = new CopyFiles(directory);
    try {
      return new SharedCopies(files, FoundCopies.index(files, boot), rules, clock);
    } catch (IOException e) {
      files.close();
      throw e;
    }
  }

  private static CopyKey key(long inode) {
    return new CopyKey(0xf5, inode, SIZE, Instant.EPOCH, Instant.EPOCH);
  }

  private @Nullable SharedCopy create(long inode, int user) {
    HeldCopy held = copies.make(key(inode), user);
    return held.isNew() ? held.copy() : null;
  }

  /** A complete copy, held; null if there is no space. */
  private @Nullable SharedCopy make(long inode, int user) throws IOException {
    SharedCopy copy = create(inode, user);
    if (copy != null) {
      write(copy, inode);
      copies.complete(copy, checksum(inode));
    }
    return copy;
  }

  private void write(SharedCopy copy, long inode) throws IOException {
    try (FileChannel file = copies.write(copy)) {
      file.write(content(inode), 0);
    }
  }

  /** The file that a client receives and can keep open. */
  private FileChannel passed(SharedCopy copy) throws Exception {
    try (SharedCopies.Present present = copies.present(copy, true)) {
      PassedFile file = Objects.requireNonNull(present.file());
      return FileChannel.open(Path.of("/proc/self/fd/" + file.descriptor()));
    }
  }

  private static ByteBuffer content(long inode) {
    return ByteBuffer.allocate(SIZE).putLong(0, inode);
  }

  private boolean fill(long first, int count, int user) throws IOException {
    boolean hasRoom = true;
    for (long inode = first; inode < first + count; inode++) {
      SharedCopy copy = make(inode, user);
      hasRoom &= copy != null;
      if (copy != null) {
        copies.release(copy, user);
      }
    }
    return hasRoom;
  }

  private boolean has(long inode) {
    SharedCopy copy = copies.hold(key(inode), ADA).copy();
    if (copy != null) {
      copies.release(copy, ADA);
    }
    return copy != null;
  }

  private long used(int user) {
    CacheReport.OfUser report = copies.room().users().get(user);
    return report == null ? 0 : report.usedBytes() / SIZE;
  }

  @Test
  void hold_copyThatIsJustBeingMade_hasAFile(@TempDir Path large) throws Exception {
    int count = 1000;
    AtomicLong made = new AtomicLong();
    CacheRules rules =
        new CacheRules(
            new Space((long) count * SIZE, UNLIMITED_FILES),
            EVICT_AFTER,
            CacheService.Limits.of(2L * count * SIZE));
    try (SharedCopies many = open(large, BOOT, rules, () -> now)) {
      CompletableFuture<Integer> looking =
          CompletableFuture.supplyAsync(
              () -> {
                int without = 0;
                while (made.get() <= count) {
                  SharedCopy copy = many.hold(key(made.get()), BOB).copy();
                  if (copy != null) {
                    without += Files.exists(copy.file) ? 0 : 1;
                    many.release(copy, BOB);
                  }
                }
                return without;
              });
      while (made.incrementAndGet() <= count) {
        assertThat(many.make(key(made.get()), ADA).isNew()).isTrue();
      }
      assertThat(looking.get()).isZero();
    }
  }

  @Test
  void create_othersLeaveTheirShares_mayUseAll() throws IOException {
    assertThat(fill(1, 10, ADA)).isTrue();

    assertThat(used(ADA)).isEqualTo(10);
  }

  @Test
  void create_anotherUserNeedsRoom_takesItFromWhoIsAboveTheShare() throws IOException {
    fill(1, 10, ADA);

    assertThat(fill(100, 10, BOB)).isFalse();

    assertThat(used(ADA)).isEqualTo(5);
    assertThat(used(BOB)).isEqualTo(5);
    // The least recently used ones are evicted.
    assertThat(has(5)).isFalse();
    assertThat(has(6)).isTrue();
  }

  @Test
  void create_severalUsers_takesFromTheFurthestAbove() throws IOException {
    fill(1, 7, ADA);
    fill(100, 3, BOB);

    assertThat(fill(200, 3, EVE)).isTrue();

    assertThat(used(ADA)).isEqualTo(4);
    assertThat(used(BOB)).isEqualTo(3);
  }

  @Test
  void create_ownCopiesInUse_keepsThem_andLaterTakesTheOldest() throws IOException {
    fill(1, 10, ADA);
    assertThat(make(11, ADA)).isNull();

    now = now.plus(EVICT_AFTER).plusSeconds(1);
    assertThat(has(1)).isTrue();
    assertThat(fill(11, 1, ADA)).isTrue();

    assertThat(has(1)).isTrue();
    assertThat(has(2)).isFalse();
    assertThat(copies.room().evicted()).isEqualTo(1);
  }

  @Test
  void create_allIsOpen_hasNoRoom_untilItIsClosed() throws IOException {
    SharedCopy first = Objects.requireNonNull(make(1, ADA));
    for (int i = 2; i <= 10; i++) {
      make(i, ADA);
    }
    now = now.plus(EVICT_AFTER).plusSeconds(1);
    assertThat(make(11, BOB)).isNull();
    assertThat(openBytes(ADA)).isEqualTo(10 * SIZE);

    copies.release(first, ADA);

    assertThat(make(11, BOB)).isNotNull();
    assertThat(has(1)).isFalse();
  }

  private long openBytes(int user) {
    CacheReport.OfUser report = copies.room().users().get(user);
    return report == null ? 0 : report.openBytes();
  }

  @Test
  void create_filesRunOut_evictsLikeBytes() throws IOException {
    copies.close();
    copies = open(directory, 4, LIMITS);
    assertThat(fill(1, 4, ADA)).isTrue();

    assertThat(fill(100, 3, BOB)).isFalse();

    assertThat(used(ADA)).isEqualTo(2);
    assertThat(used(BOB)).isEqualTo(2);
    assertThat(copies.room().usedFiles()).isEqualTo(4);
    assertThat(copies.room().capacityFiles()).isEqualTo(4);
  }

  @Test
  void make_halfOfTheCapacityIsOpen_refusesTheNext_countedWithIt() throws IOException {
    copies.close();
    copies = open(directory, UNLIMITED_FILES, CacheService.Limits.of(10 * SIZE));
    for (int i = 1; i <= 4; i++) {
      make(i, ADA);
    }
    fill(20, 1, BOB);
    CopyKey large = new CopyKey(0xf5, 5, 2 * SIZE, Instant.EPOCH, Instant.EPOCH);
    assertThat(copies.make(large, ADA).why()).isEqualTo(Refusal.LIMIT);
    assertThat(make(5, ADA)).isNotNull();

    assertThat(copies.make(key(6), ADA).why()).isEqualTo(Refusal.LIMIT);
    assertThat(copies.hold(key(20), ADA).why()).isEqualTo(Refusal.LIMIT);
    assertThat(copies.hold(key(1), ADA).copy()).as("is open already").isNotNull();
    assertThat(make(7, BOB)).isNotNull();
  }

  @Test
  void release_copyThatIsStillOpen_countsForWhoHadIt_andIsNotEvicted() throws Exception {
    SharedCopy copy = Objects.requireNonNull(make(1, ADA));
    try (FileChannel kept = passed(copy)) {
      assertThat(kept.size()).isEqualTo(SIZE);
      copies.release(copy, ADA);
      fill(2, 9, ADA);
      now = now.plus(EVICT_AFTER).plusSeconds(1);

      assertThat(fill(100, 10, BOB)).isFalse();

      assertThat(openBytes(ADA)).isEqualTo(SIZE);
      assertThat(copies.room().leftOpen()).isEqualTo(1);
      assertThat(has(1)).isTrue();
      copies.lookAgain();
      assertThat(copies.room().leftOpen()).isEqualTo(1);
    }
    copies.lookAgain();

    assertThat(openBytes(ADA)).isZero();
    assertThat(copies.room().leftOpen()).isZero();
    assertThat(make(200, EVE)).isNotNull();
  }

  @Test
  void create_copyIsOpenSinceAnEarlierRun_isNotEvicted() throws Exception {
    SharedCopy copy = Objects.requireNonNull(make(1, ADA));
    try (FileChannel kept = passed(copy)) {
      assertThat(kept.size()).isEqualTo(SIZE);
      fill(2, 9, ADA);
      openAgain();
      now = now.plus(EVICT_AFTER).plusSeconds(1);
      fill(100, 10, BOB);

      assertThat(has(1)).isTrue();
      assertThat(has(2)).isFalse();
    }
  }

  @Test
  void fail_growingCopyThatSomebodyHasOpen_freesItsRoomAtOnce_andItsFileOnceItIsClosed()
      throws Exception {
    SharedCopy copy = Objects.requireNonNull(create(1, ADA));
    try (FileChannel kept = passed(copy);
        FileChannel writer = copies.write(copy)) {
      writer.write(content(1), 0);
      copies.fail(copy);
      copies.release(copy, ADA);

      assertThat(copies.room().usedBytes()).isZero();
      assertThat(copies.room().usedFiles()).isEqualTo(1);
      assertThat(openBytes(ADA)).isEqualTo(SIZE);
      assertThat(kept.read(ByteBuffer.allocate(SIZE), 0)).as("no byte, not a zero").isNegative();
      assertThatThrownBy(() -> writer.write(content(1), 0))
          .isInstanceOf(ClosedChannelException.class);
      assertThat(has(1)).isFalse();
    }
    copies.lookAgain();

    assertThat(copies.room().usedFiles()).isZero();
    assertThat(openBytes(ADA)).isZero();
    assertThat(directory.resolve("incoming")).isEmptyDirectory();
  }

  @Test
  void fail_whileOthersHoldIt_countsUntilTheyRelease() throws IOException {
    SharedCopy copy = Objects.requireNonNull(create(1, ADA));
    SharedCopy same = Objects.requireNonNull(copies.hold(key(1), BOB).copy());
    copies.fail(copy);
    copies.release(copy, ADA);

    assertThat(copies.room().usedFiles()).isEqualTo(1);
    assertThat(has(1)).isFalse();
    copies.release(same, BOB);
    assertThat(copies.room().usedFiles()).isZero();
  }

  @Test
  void present_copy_tellsItsReaderNothingOfOthers() throws Exception {
    SharedCopy copy = Objects.requireNonNull(make(1, ADA));
    copies.release(copy, ADA);
    now = now.plus(EVICT_AFTER);
    FileTime before = (FileTime) Files.getAttribute(copy.file, "unix:ctime");
    SharedCopy his = Objects.requireNonNull(copies.hold(key(1), BOB).copy());
    try (SharedCopies.Present present = copies.present(his, true)) {
      PassedFile file = Objects.requireNonNull(present.file());
      file.read(0, ByteBuffer.allocateDirect(SIZE));
      Path shown = Files.readSymbolicLink(Path.of("/proc/self/fd/" + file.descriptor()));

      assertThat(shown.toString()).doesNotContain(Integer.toHexString(ADA));
      assertThat(Files.getAttribute(shown, "unix:ctime")).isEqualTo(before);
      FileTime written = (FileTime) Files.getAttribute(shown, "unix:lastModifiedTime");
      FileTime read = (FileTime) Files.getAttribute(shown, "unix:lastAccessTime");
      assertThat(written).isLessThanOrEqualTo(before);
      assertThat(read).isLessThanOrEqualTo(before);
    }
    copies.release(his, BOB);
  }

  @Test
  void open_again_hasTheSameCopiesAndShares_andLessRoomEvictsTheOldest() throws IOException {
    fill(1, 3, ADA);
    now = now.plusSeconds(3600);
    fill(4, 3, BOB);
    assertThat(has(1)).isTrue();
    copies.close();
    Space less = new Space(5 * SIZE, UNLIMITED_FILES);
    copies = open(directory, BOOT, new CacheRules(less, EVICT_AFTER, LIMITS), () -> now);

    assertThat(used(ADA)).isEqualTo(2);
    assertThat(used(BOB)).isEqualTo(3);
    assertThat(has(2)).isFalse();
    assertThat(has(1)).isTrue();
  }

  private static int checksum(long inode) {
    CRC32C crc = new CRC32C();
    crc.update(content(inode));
    return (int) crc.getValue();
  }

  private Path file(long inode) {
    return directory.resolve("copies").resolve(key(inode).path(checksum(inode)));
  }

  /** As after a power cut: the index was not closed, and the boot is another one. */
  private void openAfterPowerCut() throws IOException {
    copies.close();
    try (CopyIndex index = new CopyIndex(directory.resolve("index"))) {
      index.opened(new byte[] {2});
    }
    open();
  }

  @Test
  void open_afterAPowerCut_findsCopiesByTheirNames_andKnowsTheirUsers() throws IOException {
    fill(1, 3, ADA);
    fill(4, 1, BOB);
    Path lost = file(2);
    Files.write(lost, new byte[SIZE / 2]);
    Path foreign = directory.resolve("copies/00000000000000f5/01/1-2-3");
    Files.writeString(foreign, "foreign");
    openAfterPowerCut();

    assertThat(used(ADA)).isEqualTo(2);
    assertThat(used(BOB)).isEqualTo(1);
    assertThat(has(1)).isTrue();
    assertThat(has(2)).isFalse();
    assertThat(lost).doesNotExist();
    assertThat(foreign).hasContent("foreign");
  }

  @Test
  void open_indexIsDamagedOrLost_findsCopiesByTheirNames_ofNobodyUntilTheyAreAskedFor()
      throws IOException {
    fill(1, 3, BOB);
    copies.close();
    Files.writeString(directory.resolve("index/CURRENT"), "nonsense");
    open();

    assertThat(used(CopyKey.NOBODY)).isEqualTo(3);
    assertThat(has(2)).isTrue();
    assertThat(used(CopyKey.NOBODY)).isEqualTo(2);
    assertThat(used(ADA)).isEqualTo(1);
  }

  @Test
  void open_recordWithoutAFile_isDroppedWhenItIsAskedFor() throws IOException {
    fill(1, 1, ADA);
    Files.delete(file(1));
    openAgain();
    SharedCopy copy = Objects.requireNonNull(copies.hold(key(1), ADA).copy());
    copies.compare(copy, bytes -> {});
    copies.release(copy, ADA);

    assertThat(has(1)).isFalse();
    assertThat(copies.room().usedFiles()).isZero();
    assertThat(fill(1, 1, ADA)).isTrue();
  }

  /** A request that waits on a handle that is released before the answer. */
  private static SharedCopy.Waiting question() {
    return new SharedCopy.Waiting() {
      @Override
      public long wanted() {
        return SIZE;
      }

      @Override
      public void answer() {}
    };
  }

  @Test
  void present_handleWasReleased_givesNoFile_thatNobodyIsChargedFor() throws Exception {
    SharedCopy copy = Objects.requireNonNull(create(1, ADA));
    copies.await(copy, question());
    copies.release(copy, ADA);
    write(copy, 1);
    assertThat(copies.complete(copy, checksum(1))).hasSize(1);

    try (SharedCopies.Present present = copies.present(copy, true)) {
      assertThat(present.state()).isEqualTo(SharedCopy.State.GONE);
      assertThat(present.file()).isNull();
    }
    assertThat(has(1)).isTrue();
  }

  @Test
  void present_copyFailed_andItsHandlesWereReleased_freesItsRoomOnce() throws Exception {
    SharedCopy copy = Objects.requireNonNull(create(1, ADA));
    copies.release(copy, ADA);
    copies.fail(copy);
    for (int i = 0; i < 3; i++) {
      copies.present(copy, false).close();
    }

    assertThat(copies.room().usedFiles()).isZero();
    assertThat(copies.room().usedBytes()).isZero();
  }

  @Test
  void make_recordsCannotBeRemoved_freesTheRoomOfEachCopyOnce(@TempDir Path other)
      throws IOException {
    AtomicBoolean fails = new AtomicBoolean();
    Faults faults =
        new Faults() {
          @Override
          public void beforeWrite() throws RocksDBException {
            if (fails.get()) {
              throw new RocksDBException("IO error: Disk quota exceeded");
            }
          }
        };
    CopyFiles files = new CopyFiles(other);
    CopyIndex index = new CopyIndex(files.index(), faults);
    Space capacity = new Space(10 * SIZE, UNLIMITED_FILES);
    try (SharedCopies full =
        new SharedCopies(files, index, new CacheRules(capacity, EVICT_AFTER, LIMITS), () -> now)) {
      copies.close();
      copies = full;
      assertThat(fill(1, 10, ADA)).isTrue();
      now = now.plus(EVICT_AFTER.multipliedBy(2));
      fails.set(true);
      List<SharedCopy> growing = new ArrayList<>();
      for (int i = 11; i <= 14; i++) {
        growing.add(Objects.requireNonNull(create(i, ADA)));
      }
      for (SharedCopy copy : growing) {
        assertThatThrownBy(() -> copies.complete(copy, 0)).isInstanceOf(StateException.class);
        copies.fail(copy);
        copies.release(copy, ADA);
      }
      fails.set(false);

      assertThat(copies.room().usedBytes()).isEqualTo(bytesBelow(other.resolve("copies")));
      assertThat(copies.room().usedBytes()).isNotNegative();
    }
  }

  private static long bytesBelow(Path directory) throws IOException {
    try (Stream<Path> all = Files.walk(directory)) {
      return all.filter(Files::isRegularFile).count() * SIZE;
    }
  }

  @Test
  void beginComparison_anotherThreadComparesTheCopy_isFalse() throws IOException {
    fill(1, 1, ADA);
    openAgain();
    SharedCopy copy = Objects.requireNonNull(copies.hold(key(1), ADA).copy());

    assertThat(copies.beginComparison(copy)).isTrue();
    assertThat(copies.beginComparison(copy)).isFalse();
    copies.endComparison(copy);
    assertThat(copies.beginComparison(copy)).isTrue();
    copies.release(copy, ADA);
  }

  @Test
  void checksum_reportsEachPart_soThatALargeComparisonDoesNotLookLikeOneThatHangs(
      @TempDir Path other) throws IOException {
    Path file = Files.write(other.resolve("large"), new byte[600_000]);
    List<Long> parts = new ArrayList<>();
    CopyContent.checksum(file, 600_000, parts::add);

    assertThat(parts).containsExactly(262_144L, 262_144L, 75_712L);
  }

  @Test
  void open_directoryInUse_isRefused() {
    assertThatThrownBy(() -> open(directory, UNLIMITED_FILES, LIMITS))
        .hasMessageContaining("in use by another cache");
  }

  @ParameterizedTest
  @ValueSource(strings = {"incoming/1", "copies/fs/mine", "leaving/1", "a"})
  void open_directoryOfSomebodyElse_isRefusedAndLeftAlone(String name, @TempDir Path other)
      throws IOException {
    Path foreign = other.resolve(name);
    Files.createDirectories(foreign.getParent());
    Files.writeString(foreign, "foreign");

    assertThatThrownBy(() -> open(other, UNLIMITED_FILES, LIMITS))
        .isInstanceOf(IOException.class)
        .hasMessageContaining(other + " contains files but is not a cache of pmfs node-cache");

    assertThat(foreign).hasContent("foreign");
    assertThat(other.resolve("lock")).doesNotExist();
  }
}
