package io.pmfs.stage.copies;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.memory.CollectingSink;
import io.pmfs.metadata.Attributes;
import io.pmfs.metadata.Checksums;
import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.source.FakeStore;
import io.pmfs.stage.Stage;
import io.pmfs.stage.formats.Blocks;
import io.pmfs.tier.CopyWriter;
import io.pmfs.tier.FaultyTier;
import io.pmfs.tier.FaultyTier.Fault;
import io.pmfs.tier.FaultyTier.Point;
import io.pmfs.tier.Tier;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(60)
final class CopiesTest {
  private static final int BLOCK = Blocks.SIZE;
  private static final long ROOM = 256L << 20;

  @TempDir private Path directory;
  private final List<Stage> opened = new ArrayList<>();

  /** A stage with tiers of these capacities, until the test ends. */
  private Stage open(long... capacities) throws IOException {
    Stage stage = new Stage(directory, capacities);
    opened.add(stage);
    return stage;
  }

  @AfterEach
  void close() throws Exception {
    for (Stage stage : opened) {
      stage.close();
    }
  }

  /** A file with a copy. */
  private static Inode staged(Stage stage, long size) throws Exception {
    Inode inode = stage.file("f", 1, size);
    stage.stage(inode);
    return inode;
  }

  /** The same in the next session, which has not looked at the copy yet. */
  private static Inode stagedAndRestarted(Stage stage, long size) throws Exception {
    Inode inode = staged(stage, size);
    stage.restart();
    return inode;
  }

  private static void flip(Path file, long offset) throws IOException {
    try (var channel =
        Files.newByteChannel(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      ByteBuffer one = ByteBuffer.allocate(1);
      channel.position(offset).read(one);
      one.put(0, (byte) ~one.get(0)).rewind();
      channel.position(offset).write(one);
    }
  }

  /**
   * Reads after a restart: the bytes must be right, and the copy dropped, counted and recreated.
   */
  private static void assertDropped(Stage stage, Inode inode) throws Exception {
    byte[] expected = Stage.expected(1, inode);
    assertThat(stage.read(inode)).isEqualTo(expected);
    assertThat(stage.copies.mismatches()).isEqualTo(1);
    stage.awaitIdle();
    assertThat(stage.tiers.get(0).hasFailed()).isFalse();
    assertThat(Files.readAllBytes(stage.copyFile(0, inode))).isEqualTo(expected);
    assertThat(stage.read(inode)).isEqualTo(expected);
    assertThat(stage.copies.mismatches()).isEqualTo(1);
    assertThat(stage.tiers.get(0).status().copies()).isEqualTo(1);
  }

  @Test
  void read_anyByteOfASmallCopyFlipped_isDroppedAndTheSourceServed() throws Exception {
    Stage stage = open(ROOM);
    Inode inode = staged(stage, 100);
    for (int at = 0; at < 100; at++) {
      stage.restart();
      flip(stage.copyFile(0, inode), at);

      assertDropped(stage, inode);
    }
  }

  @ParameterizedTest
  @ValueSource(
      ints = {
        0,
        1,
        BLOCK / 2,
        BLOCK - 1,
        BLOCK,
        BLOCK + 131_072,
        2 * BLOCK - 1,
        2 * BLOCK,
        3 * BLOCK,
        3 * BLOCK + 6
      })
  void read_byteOfALargeCopyFlipped_isDroppedAndTheSourceServed(int at) throws Exception {
    Stage stage = open(ROOM);
    Inode inode = stagedAndRestarted(stage, 3L * BLOCK + 7);
    flip(stage.copyFile(0, inode), at);

    assertDropped(stage, inode);
  }

  /** Like two readers that find it bad concurrently. */
  @Test
  void reject_aCopyTwice_isCountedOnce() throws Exception {
    Stage stage = open(ROOM);
    Inode inode = staged(stage, 100);
    CopyRecord copy = stage.namespace.copies(inode.number()).get(0);
    stage.copies.reject(inode, copy, "it is bad", true);
    stage.copies.reject(inode, copy, "it is bad", true);
    assertThat(stage.copies.mismatches()).isEqualTo(1);
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** A reader finds a copy bad, and reports it after the file has been copied again. */
  @Test
  void read_findsABadCopyThatHasBeenReplaced_leavesTheNewOne() throws Exception {
    ExecutorService threads = Executors.newCachedThreadPool();
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, 100);
      stage.stage(inode);
      CountDownLatch reading = new CountDownLatch(1);
      CountDownLatch replaced = new CountDownLatch(1);
      AtomicInteger reads = new AtomicInteger();
      stage
          .tiers
          .get(0)
          .faults(
              (point, number) -> {
                if (point != Point.READ || reads.incrementAndGet() > 1) {
                  return Fault.NONE;
                }
                reading.countDown();
                await(replaced);
                return Fault.CORRUPT;
              });
      stage.restart();
      Future<byte[]> reader = threads.submit(() -> stage.read(inode));
      await(reading);
      CopyRecord bad = stage.namespace.copies(inode.number()).get(0);
      stage.copies.reject(inode, bad, "another reader found it bad", true);
      stage.stage(inode);
      replaced.countDown();

      assertThat(reader.get()).isEqualTo(Stage.expected(1, inode));
      assertThat(stage.copies.mismatches()).isEqualTo(1);
      assertThat(stage.copies.has(inode)).isTrue();
      assertThat(stage.store.bytesRead("f")).as("copied, and copied again").isEqualTo(200);
    } finally {
      threads.shutdownNow();
    }
  }

  @Test
  void read_goodBlockOfACopyWithABadOne_isServedFromTheTier() throws Exception {
    Stage stage = open(ROOM);
    Inode inode = stagedAndRestarted(stage, 3L * BLOCK);
    flip(stage.copyFile(0, inode), BLOCK + 5);
    long asked = stage.source.operations().total();

    assertThat(stage.read(inode, 2L * BLOCK, BLOCK))
        .isEqualTo(FakeStore.content(1, 2L * BLOCK, BLOCK));
    assertThat(stage.read(inode, 10, 100)).isEqualTo(FakeStore.content(1, 10, 100));
    assertThat(stage.source.operations().total()).isEqualTo(asked);
    assertThat(stage.copies.mismatches()).isZero();
    assertThat(stage.copies.verified()).isZero();
    assertThat(stage.read(inode, BLOCK - 10, 20)).isEqualTo(FakeStore.content(1, BLOCK - 10, 20));
    assertThat(stage.copies.mismatches()).isEqualTo(1);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, BLOCK, 2 * BLOCK + 6})
  void read_copyTruncated_isDroppedAndTheSourceServed(int size) throws Exception {
    Stage stage = open(ROOM);
    Inode inode = stagedAndRestarted(stage, 2L * BLOCK + 7);
    try (var channel = Files.newByteChannel(stage.copyFile(0, inode), StandardOpenOption.WRITE)) {
      channel.truncate(size);
    }

    assertDropped(stage, inode);
  }

  @Test
  void read_copyTruncatedWhileItIsOpen_isDroppedAndTheSourceServed() throws Exception {
    Stage stage = open(ROOM);
    Inode inode = staged(stage, 100);
    assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
    try (var channel = Files.newByteChannel(stage.copyFile(0, inode), StandardOpenOption.WRITE)) {
      channel.truncate(50);
    }

    assertDropped(stage, inode);
  }

  @Test
  void read_copyAppendedTo_isDroppedAndTheSourceServed() throws Exception {
    Stage stage = open(ROOM);
    Inode inode = stagedAndRestarted(stage, 100);
    Files.write(stage.copyFile(0, inode), new byte[1], StandardOpenOption.APPEND);

    assertDropped(stage, inode);
  }

  @Test
  void read_copyDeleted_isCountedAndTheSourceServed() throws Exception {
    Stage stage = open(ROOM);
    Inode inode = stagedAndRestarted(stage, 100);
    Files.delete(stage.copyFile(0, inode));

    assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
    assertThat(stage.copies.mismatches()).isEqualTo(1);
    stage.awaitIdle();
    assertThat(Files.readAllBytes(stage.copyFile(0, inode))).isEqualTo(Stage.expected(1, inode));
  }

  @ParameterizedTest
  @ValueSource(ints = {100, 4096})
  void read_copyReplacedByADirectory_theSourceIsServed(int size) throws Exception {
    Stage stage = open(ROOM);
    Inode inode = stagedAndRestarted(stage, size);
    Files.delete(stage.copyFile(0, inode));
    Files.createDirectory(stage.copyFile(0, inode));

    assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
    stage.awaitIdle();
    assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
  }

  @Test
  void read_goodCopy_isVerifiedOnceAndAsksNothingOfTheSource() throws Exception {
    Stage stage = open(ROOM);
    Inode inode = stagedAndRestarted(stage, 3L * BLOCK + 7);
    long asked = stage.source.operations().total();
    assertThat(stage.read(inode, 0, 10)).isEqualTo(FakeStore.content(1, 0, 10));
    assertThat(stage.copies.verified()).isZero();
    for (int i = 0; i < 3; i++) {
      assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
    }

    assertThat(stage.copies.verified()).isEqualTo(1);
    assertThat(stage.copies.mismatches()).isZero();
    assertThat(stage.source.operations().total()).isEqualTo(asked);
  }

  @Test
  void read_recordOfAnotherVersion_isNotServed() throws Exception {
    Stage stage = open(ROOM);
    Inode inode = stagedAndRestarted(stage, 100);
    stage.store.write("f", 2, 100);
    Attributes now = stage.store.expectedStatus(inode.name()).attributes();
    Inode changed =
        new Inode(
            inode.number(),
            inode.identity(),
            inode.parent(),
            inode.name(),
            inode.checkedIn(),
            null,
            now);
    stage.namespace.updateInode(changed.number(), known -> changed);

    assertThat(stage.copies.has(changed)).isFalse();
    assertThat(stage.read(changed)).isEqualTo(Stage.expected(2, changed));
    stage.awaitIdle();
    assertThat(stage.copies.has(changed)).isTrue();
    stage.restart();
    assertThat(stage.read(changed)).isEqualTo(Stage.expected(2, changed));
  }

  @Test
  void read_recordOfAnotherFormat_isDroppedAndTheSourceServed() throws Exception {
    Stage stage = open(ROOM);
    Inode inode = staged(stage, 100);
    SourceVersion version = inode.attributes().version();
    Checksums checksums = stage.namespace.copies(inode.number()).get(0).checksums();
    for (CopyRecord unreadable :
        List.of(
            new CopyRecord("ssd:0", 1, version, 100, BLOCK, checksums, false, null),
            new CopyRecord("ssd:0", 0, version, 100, BLOCK / 2, checksums, false, null),
            new CopyRecord("ssd:0", 0, version, 100, BLOCK, Checksums.of(1, 2), false, null))) {
      stage.restart();
      stage.namespace.putCopy(inode.number(), unreadable);
      assertDropped(stage, inode);
    }
  }

  @Test
  void read_recordOfATierThatIsNoLongerThere_isIgnored() throws Exception {
    Stage stage = open(ROOM);
    Inode inode = stage.file("f", 1, 100);
    stage.namespace.putCopy(
        inode.number(),
        new CopyRecord(
            "ssd:gone", 0, inode.attributes().version(), 100, BLOCK, Checksums.of(1), false, null));

    assertThat(stage.copies.has(inode)).isFalse();
    stage.stage(inode);
    assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
    assertThat(stage.copies.mismatches()).isZero();
  }

  /** A file of which both tiers hold a copy. */
  private static Inode stagedTwice(Stage stage, long size) throws Exception {
    return stagedTwice(stage, stage.file("f", 1, size), 1);
  }

  private static Inode stagedTwice(Stage stage, Inode inode, long seed) throws Exception {
    stage.stage(inode);
    CopyRecord record = stage.namespace.copies(inode.number()).get(0);
    CopyWriter writer =
        Objects.requireNonNull(
            stage.tiers.get(1).create(inode.number(), inode.attributes().size()));
    writer.write(0, ByteBuffer.wrap(Stage.expected(seed, inode)));
    writer.commit();
    writer.close();
    stage.namespace.putCopy(
        inode.number(),
        new CopyRecord(
            "ssd:1",
            record.codec(),
            record.version(),
            record.storedSize(),
            record.blockSize(),
            record.checksums(),
            false,
            null));
    stage.restart();
    return inode;
  }

  @Test
  void read_twoTiers_theFastestServes() throws Exception {
    Stage stage = open(ROOM, ROOM);
    Inode inode = stagedTwice(stage, 5000);
    stage
        .tiers
        .get(1)
        .faults(
            (point, number) -> {
              throw new AssertionError("the slower tier was asked");
            });

    assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
  }

  @ParameterizedTest
  @ValueSource(strings = {"OPEN", "READ"})
  void read_fastestTierFails_theNextServesAndTheRecordStays(Point point) throws Exception {
    Stage stage = open(ROOM, ROOM);
    Inode inode = stagedTwice(stage, 5000);
    stage.tiers.get(0).failAt(point);
    long asked = stage.source.operations().total();

    for (int i = 0; i < 3; i++) {
      assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
    }
    assertThat(stage.tiers.get(0).hasFailed()).isTrue();
    assertThat(stage.tiers.get(1).hasFailed()).isFalse();
    assertThat(stage.source.operations().total()).isEqualTo(asked);
    assertThat(stage.namespace.copies(inode.number()))
        .extracting(CopyRecord::tier)
        .containsExactlyInAnyOrder("ssd:0", "ssd:1");
    assertThat(stage.copies.mismatches()).isZero();
  }

  @Test
  void read_openCopyWhenItsTierFails_theNextServes() throws Exception {
    Stage stage = open(ROOM, ROOM);
    Inode inode = stagedTwice(stage, 5000);
    stage.read(inode);
    stage.tiers.get(0).failAt(Point.READ);
    long asked = stage.source.operations().total();

    assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
    assertThat(stage.source.operations().total()).isEqualTo(asked);
  }

  /** Its other open copies are not taken for copies of the next tier. */
  @Test
  void read_otherOpenCopyWhenItsTierFailed_theNextServesAndStays() throws Exception {
    Stage stage = open(ROOM, ROOM);
    Inode one = stagedTwice(stage, 5000);
    Inode other = stagedTwice(stage, stage.file("g", 2, 5000), 2);
    stage.read(one);
    stage.read(other);
    stage.tiers.get(0).failAt(Point.READ);
    stage.read(one);
    long asked = stage.source.operations().total();

    assertThat(stage.read(other)).isEqualTo(Stage.expected(2, other));
    assertThat(stage.tiers.get(1).hasFailed()).isFalse();
    assertThat(stage.source.operations().total()).isEqualTo(asked);
  }

  @Test
  void compare_tierFailsMeanwhile_saysSo() throws Exception {
    Stage stage = open(ROOM);
    Inode inode = staged(stage, 5000);
    CopyRecord copy = stage.namespace.copies(inode.number()).get(0);
    FaultyTier tier = stage.tiers.get(0);
    tier.faults(
        (point, number) -> {
          tier.fail("another thread could not read it");
          return Fault.SHORT;
        });

    assertThatThrownBy(() -> stage.copies.compare(inode, copy, count -> true))
        .hasMessageContaining("another thread could not read it");
  }

  @Test
  void read_tierFailsWhileABadCopyIsComparedAgain_keepsItsRecord() throws Exception {
    Stage stage = open(ROOM);
    Inode inode = stagedAndRestarted(stage, 100);
    AtomicInteger opens = new AtomicInteger();
    FaultyTier tier = stage.tiers.get(0);
    tier.faults(
        (point, number) -> {
          if (point == Point.OPEN && opens.incrementAndGet() > 1) {
            tier.fail("another thread could not read it");
            return Fault.SHORT;
          }
          return point == Point.READ ? Fault.CORRUPT : Fault.NONE;
        });

    assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
    assertThat(stage.namespace.copies(inode.number())).hasSize(1);
  }

  @Test
  void isThere_tierFailsMeanwhile_keepsTheRecord() throws Exception {
    Stage stage = open(ROOM);
    Inode inode = staged(stage, 100);
    AtomicInteger looks = new AtomicInteger();
    FaultyTier tier = stage.tiers.get(0);
    tier.faults(
        (point, number) -> {
          if (point == Point.HAS && looks.incrementAndGet() > 1) {
            tier.fail("another thread could not read it");
          }
          return Fault.SHORT;
        });

    assertThat(stage.copies.isThere(inode)).isFalse();
    assertThat(stage.namespace.copies(inode.number())).hasSize(1);
  }

  @Test
  void read_copyInTheFastestTierBad_theNextServes() throws Exception {
    Stage stage = open(ROOM, ROOM);
    Inode inode = stagedTwice(stage, 5000);
    flip(stage.copyFile(0, inode), 4999);
    long asked = stage.source.operations().total();

    assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
    assertThat(stage.copies.mismatches()).isEqualTo(1);
    assertThat(stage.source.operations().total()).isEqualTo(asked);
    assertThat(stage.copyFile(0, inode)).doesNotExist();
    assertThat(stage.namespace.copies(inode.number()))
        .extracting(CopyRecord::tier)
        .containsExactly("ssd:1");
  }

  @Test
  void read_allTiersFailed_theSourceIsServedAndNothingIsLost() throws Exception {
    Stage stage = open(ROOM, ROOM);
    Inode inode = stagedTwice(stage, 5000);
    stage.tiers.forEach(tier -> tier.failAt(Point.OPEN));

    assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
    assertThat(stage.namespace.copies(inode.number())).hasSize(2);
  }

  @Test
  void read_tierForgetsAtAnyTime_isAlwaysRight() throws Exception {
    Stage stage = open(ROOM, ROOM);
    Inode inode = stagedTwice(stage, BLOCK + 5);
    int[] step = {0};
    stage
        .tiers
        .get(0)
        .faults(
            (point, number) ->
                switch (step[0]++ % 5) {
                  case 1 -> Fault.SHORT;
                  case 3 -> point == Point.OPEN ? Fault.CORRUPT : Fault.NONE;
                  default -> Fault.NONE;
                });
    for (int i = 0; i < 50; i++) {
      int offset = i * 20_000;
      assertThat(stage.read(inode, offset, 1000)).isEqualTo(FakeStore.content(1, offset, 1000));
      stage.awaitIdle();
    }
  }

  @Test
  void drop_copiesInTwoTiers_removesThemAndTheirRecords() throws Exception {
    Stage stage = open(ROOM, ROOM);
    Inode inode = stagedTwice(stage, 5000);
    stage.read(inode);
    stage.copies.drop(inode.number());

    assertThat(stage.copies.has(inode)).isFalse();
    assertThat(stage.namespace.copies(inode.number())).isEmpty();
    assertThat(stage.files(0)).isEmpty();
    assertThat(stage.files(1)).isEmpty();
    assertThat(stage.copies.copyTo(inode, 0, 1, new CollectingSink())).isEqualTo(Copies.NO_TIER);
  }

  @Test
  void copies_tooManyTiers_areRefused() throws Exception {
    Stage stage = open(ROOM);
    List<Tier> many =
        new ArrayList<>(Collections.nCopies(Whereabouts.MAX_TIERS + 1, stage.tiers.get(0)));

    assertThatThrownBy(() -> TestCopies.raw(stage.namespace, many))
        .isInstanceOf(IllegalArgumentException.class);
  }

  @Test
  void drop_ofWhatChanged_isRememberedAsOutdatedUntilItIsCopiedAgain() throws Exception {
    Stage stage = open(ROOM);
    Inode inode = stage.file("f", 1, 100);
    assertThat(stage.copies.drop(inode.number())).isFalse();
    assertThat(stage.copies.isOutdated(inode.number())).isFalse();
    stage.stage(inode);
    assertThat(stage.copies.drop(inode.number())).isTrue();
    assertThat(stage.copies.drop(inode.number())).isFalse();
    assertThat(stage.copies.isOutdated(inode.number())).isTrue();
    stage.stage(inode);

    assertThat(stage.copies.isOutdated(inode.number())).isFalse();
  }

  @Test
  void evictUnpinned_ofPinnedAndOtherCopies_leavesThePinned() throws Exception {
    Stage stage = open(ROOM);
    Inode pinned = stage.file("f", 1, 100);
    Inode other = stage.file("g", 2, 100);
    stage.stage(pinned);
    stage.stage(other);
    assertThat(stage.copies.index().place(pinned, new Placement(null, true))).isTrue();

    assertThat(stage.copies.evictUnpinned(pinned.number())).isFalse();
    assertThat(stage.copies.evictUnpinned(other.number())).isTrue();
    assertThat(stage.copies.has(pinned)).isTrue();
    assertThat(stage.copies.has(other)).isFalse();
    assertThat(stage.copies.evict(pinned.number())).isTrue();
    assertThat(stage.copies.has(pinned)).isFalse();
  }

  @Test
  void commit_ofAVersionThatIsNotTheKnownOne_isRefused() throws Exception {
    Stage stage = open(ROOM);
    Inode before = stage.file("f", 1, 100);
    stage.store.setModified("f", stage.store.now().minusSeconds(5));
    stage.importAll();
    stage.store.setModified("f", before.attributes().modificationTime());
    assertThat(stage.read(before)).isEqualTo(Stage.expected(1, before));
    stage.awaitIdle();

    assertThat(stage.namespace.copies(before.number())).isEmpty();
    assertThat(stage.files(0)).isEmpty();
    assertThat(stage.tiers.get(0).hasFailed()).isFalse();
  }
}
