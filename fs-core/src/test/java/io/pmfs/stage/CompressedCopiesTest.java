package io.pmfs.stage;

import static io.pmfs.source.FaultyStore.Operation.READ;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.compression.Dictionary;
import io.pmfs.compression.ZstdCodec;
import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.source.FakeStore;
import io.pmfs.stage.copies.EvictionPolicy;
import io.pmfs.stage.copies.LeastRecentlyUsed;
import io.pmfs.stage.copies.Placement;
import io.pmfs.stage.copies.Share;
import io.pmfs.stage.copies.TestCopies;
import io.pmfs.stage.formats.Blocks;
import io.pmfs.stage.formats.Bundling;
import io.pmfs.stage.formats.Compression;
import io.pmfs.stage.formats.CopyFormat;
import io.pmfs.stage.formats.DictionaryFile;
import io.pmfs.stage.formats.Frames;
import io.pmfs.tier.Hold;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Compressed copies in all of staging and reading. Content with a negative seed is compressible.
 */
@Timeout(120)
final class CompressedCopiesTest {
  private static final int BLOCK = Blocks.SIZE;
  private static final int FRAME = Frames.SIZE;
  private static final long ROOM = 256L << 20;
  private static final Compression ZSTD = Compression.parse("zstd:1");
  private static final Compression AUTO = Compression.parse("auto:1");

  @TempDir private Path directory;

  private static CopyRecord record(Stage stage, Inode inode) {
    List<CopyRecord> copies = stage.namespace.copies(inode.number());
    assertThat(copies).hasSize(1);
    return copies.get(0);
  }

  private static long allocated(long size) {
    return (size + 4095) / 4096 * 4096;
  }

  @ParameterizedTest
  @ValueSource(
      ints = {
        1,
        2,
        FRAME - 1,
        FRAME,
        FRAME + 1,
        BLOCK - 1,
        BLOCK,
        BLOCK + 1,
        BLOCK + FRAME,
        3 * BLOCK + 7
      })
  void read_ofAnySize_isTheContent(int size) throws Exception {
    for (long seed : new long[] {1, -1}) {
      try (Stage stage = new Stage(directory.resolve("seed" + seed), ROOM).with(ZSTD)) {
        Inode inode = stage.file("f", seed, size);
        byte[] expected = Stage.expected(seed, inode);
        assertThat(stage.read(inode)).isEqualTo(expected);
        stage.awaitIdle();
        assertThat(stage.read(inode)).isEqualTo(expected);
        stage.restart();
        long asked = stage.source.operations().total();
        assertThat(stage.read(inode)).isEqualTo(expected);
        for (int at : new int[] {0, size / 2, size - 1}) {
          int count = Math.min(4096, size - at);
          assertThat(stage.read(inode, at, count))
              .isEqualTo(Arrays.copyOfRange(expected, at, at + count));
        }
        assertThat(stage.source.operations().total()).isEqualTo(asked);
        long stored = Files.size(stage.copyFile(0, inode));
        CopyRecord record = record(stage, inode);
        assertThat(record.codec()).isEqualTo(ZstdCodec.NUMBER);
        assertThat(record.storedSize()).isEqualTo(stored);
        assertThat(record.blockSize()).isEqualTo(FRAME);
        assertThat(stage.tiers.get(0).status().usedBytes()).isEqualTo(allocated(stored));
        if (seed > 0) {
          assertThat(stored).isLessThanOrEqualTo(stage.copies.formats().get(0).mostStored(size));
        } else if (size > 100) {
          assertThat(stored).isLessThan(size * 3L / 4);
        }
      }
    }
  }

  @Test
  void tier_afterEvicting_isEmptyAgain() throws Exception {
    try (Stage stage = new Stage(directory, ROOM).with(AUTO)) {
      Inode shrinks = stage.file("a", -1, 3L * BLOCK);
      Inode random = stage.file("b", 1, 3L * BLOCK);
      stage.stage(shrinks);
      stage.stage(random);
      assertThat(stage.tiers.get(0).status().usedBytes()).isBetween(4L * BLOCK, 5L * BLOCK);
      stage.copies.drop(shrinks.number());
      assertThat(stage.tiers.get(0).status().usedBytes()).isEqualTo(3L * BLOCK);
      stage.copies.index().evict(random.number(), stage.tiers.get(0));
      assertThat(stage.tiers.get(0).status().usedBytes()).isZero();
    }
  }

  @Test
  void auto_byContent_compressesWhatShrinks() throws Exception {
    try (Stage stage = new Stage(directory, ROOM).with(AUTO)) {
      Inode shrinks = stage.file("a", -1, 300_000);
      Inode random = stage.file("b", 1, 300_000);
      Inode oneUnit = stage.file("c", -1, 4096);
      Inode twoUnits = stage.file("d", -1, 8000);
      for (Inode inode : List.of(shrinks, random, oneUnit, twoUnits)) {
        stage.stage(inode);
      }
      assertThat(record(stage, shrinks).codec()).isEqualTo(ZstdCodec.NUMBER);
      assertThat(record(stage, random).codec()).isZero();
      assertThat(record(stage, oneUnit).codec()).isZero();
      assertThat(record(stage, twoUnits).codec()).isEqualTo(ZstdCodec.NUMBER);
    }
  }

  @Test
  void file_ofACompressedCopy_isNotForTheKernel() throws Exception {
    try (Stage stage = new Stage(directory, ROOM).with(AUTO)) {
      Inode shrinks = stage.file("a", -1, 300_000);
      Inode random = stage.file("b", 1, 300_000);
      stage.stage(shrinks);
      stage.stage(random);
      for (int session = 0; session < 2; session++) {
        assertThat(stage.copies.file(shrinks)).isNull();
        assertThat(stage.stager.copyFile(shrinks)).isNull();
        assertThat(stage.copies.isReadByUs(shrinks)).isTrue();
        assertThat(stage.copies.isReadByUs(random)).isFalse();
        stage.restart();
      }
    }
  }

  @Test
  void read_afterCompressionWasTurnedOff_isServedFromTheCopy() throws Exception {
    try (Stage stage = new Stage(directory, ROOM).with(ZSTD)) {
      Inode inode = stage.file("f", -1, 300_000);
      stage.stage(inode);
      stage.with(Compression.NONE);
      long asked = stage.source.operations().total();
      assertThat(stage.read(inode)).isEqualTo(Stage.expected(-1, inode));
      assertThat(stage.source.operations().total()).isEqualTo(asked);
    }
  }

  @Test
  void read_anyByteOfACopyFlipped_isNeverWrong() throws Exception {
    try (Stage stage = new Stage(directory, ROOM).with(ZSTD)) {
      for (long size : new long[] {200, FRAME + 1}) {
        Inode inode = stage.file("f" + size, -1, size);
        stage.stage(inode);
        byte[] good = Files.readAllBytes(stage.copyFile(0, inode));
        byte[] expected = Stage.expected(-1, inode);
        int step = Math.max(1, good.length / 300);
        for (int at = 0; at < good.length; at += at < good.length - 60 ? step : 1) {
          stage.restart();
          byte[] bad = Files.readAllBytes(stage.copyFile(0, inode));
          bad[at] ^= 0x55;
          Files.write(stage.copyFile(0, inode), bad);
          assertThat(stage.read(inode)).as("byte %d", at).isEqualTo(expected);
          stage.awaitIdle();
          assertThat(stage.tiers.get(0).hasFailed()).isFalse();
        }
      }
    }
  }

  @Test
  void read_copyOfAnotherLength_isDroppedAndTheSourceServed() throws Exception {
    try (Stage stage = new Stage(directory, ROOM).with(ZSTD)) {
      Inode inode = stage.file("f", -1, 3L * BLOCK + 7);
      stage.stage(inode);
      byte[] expected = Stage.expected(-1, inode);
      byte[] good = Files.readAllBytes(stage.copyFile(0, inode));
      for (int size : new int[] {0, 1, 16, 17, good.length / 2, good.length - 1, good.length + 1}) {
        stage.restart();
        Files.write(stage.copyFile(0, inode), Arrays.copyOf(good, size));
        assertThat(stage.read(inode)).as("%d bytes", size).isEqualTo(expected);
        assertThat(stage.copies.mismatches()).isEqualTo(1);
        stage.awaitIdle();
        assertThat(stage.copyFile(0, inode)).hasSize(good.length);
      }
    }
  }

  @Test
  void read_ofOtherContentThatIsAValidCopy_isNeverWrong() throws Exception {
    try (Stage stage = new Stage(directory, ROOM).with(ZSTD)) {
      Inode one = stage.file("a", -1, 3L * BLOCK);
      Inode other = stage.file("b", -2, 3L * BLOCK);
      stage.stage(one);
      stage.stage(other);
      stage.restart();
      Files.copy(
          stage.copyFile(0, other), stage.copyFile(0, one), StandardCopyOption.REPLACE_EXISTING);
      assertThat(stage.read(one)).isEqualTo(Stage.expected(-1, one));
      assertThat(stage.copies.mismatches()).isEqualTo(1);
    }
  }

  @Test
  void read_ofRandomRangesWhileStagedAndEvicted_isTheContent() throws Exception {
    long seed = new Random().nextLong();
    try (Stage stage = new Stage(directory, 8L * BLOCK).with(AUTO).with(policy(seed))) {
      List<Inode> inodes = new ArrayList<>();
      for (int i = 0; i < 6; i++) {
        inodes.add(stage.file("f" + i, i - 3, (i + 1L) * BLOCK - i * 1000L));
      }
      ExecutorService threads = Executors.newFixedThreadPool(4);
      try {
        List<Future<?>> done = new ArrayList<>();
        for (int t = 0; t < 4; t++) {
          Random random = new Random(seed + t);
          done.add(
              threads.submit(
                  () -> {
                    for (int round = 0; round < 150; round++) {
                      int i = random.nextInt(inodes.size());
                      Inode inode = inodes.get(i);
                      int size = Math.toIntExact(inode.attributes().size());
                      int from = random.nextInt(size);
                      int count = 1 + random.nextInt(Math.min(size - from, 3 * FRAME));
                      assertThat(stage.read(inode, from, count))
                          .as("seed %d", seed)
                          .isEqualTo(FakeStore.content(i - 3, from, count));
                    }
                    return null;
                  }));
        }
        for (Future<?> future : done) {
          future.get();
        }
      } finally {
        threads.shutdownNow();
      }
      assertThat(stage.copies.mismatches()).isZero();
      stage.awaitIdle();
      inodes.forEach(inode -> stage.copies.drop(inode.number()));
      assertThat(stage.tiers.get(0).status().usedBytes()).isZero();
    }
  }

  private static EvictionPolicy policy(long seed) {
    return new LeastRecentlyUsed(new SplittableRandom(seed));
  }

  private static String json(int i) {
    Random random = new Random(i);
    StringBuilder text = new StringBuilder("{\"annotations\": [");
    while (text.length() < 6000) {
      text.append("{\"category_id\": ").append(random.nextInt(90));
      text.append(", \"iscrowd\": 0, \"bounding_box\": [").append(random.nextInt(640)).append("]}");
    }
    return text.append("]}").toString();
  }

  @Test
  void dictionary_fileTakenAway_isWrittenAgainOrItsCopiesAreNotThere() throws Exception {
    List<byte[]> samples = new ArrayList<>();
    for (int i = 0; i < 400; i++) {
      samples.add(json(i).getBytes(UTF_8));
    }
    Dictionary dictionary = Objects.requireNonNull(Dictionary.train(samples, 16_000, 3));
    try (Stage stage = new Stage(directory, ROOM)) {
      Path tier = directory.resolve("tier0");
      assertThat(DictionaryFile.save(tier, dictionary)).isTrue();
      stage.with(ZSTD);
      Inode inode = stage.file("f", -1, 5000);
      stage.stage(inode);
      Path file = dictionaries(tier).get(0);
      Files.delete(file);
      stage.copies.keepDictionaries();
      assertThat(file).hasBinaryContent(dictionary.bytes());
      assertThat(stage.copies.isThere(inode)).isTrue();

      Files.delete(file);
      stage.restart();
      assertThat(stage.copies.isThere(inode)).isFalse();
      assertThat(stage.tiers.get(0).status().copies()).isZero();
    }
  }

  @Test
  void dictionary_lost_dropsTheCopiesThatNeedItAndServesTheSource() throws Exception {
    List<byte[]> samples = new ArrayList<>();
    for (int i = 0; i < 400; i++) {
      samples.add(json(i).getBytes(UTF_8));
    }
    Dictionary dictionary = Objects.requireNonNull(Dictionary.train(samples, 16_000, 3));
    try (Stage stage = new Stage(directory, ROOM)) {
      Path tier = directory.resolve("tier0");
      assertThat(DictionaryFile.save(tier, dictionary)).isTrue();
      stage.with(ZSTD);
      Inode inode = stage.file("f", -1, 5000);
      stage.stage(inode);
      assertThat(record(stage, inode).codec()).isEqualTo(ZstdCodec.WITH_DICTIONARY);
      stage.restart();
      long asked = stage.source.operations().total();
      assertThat(stage.read(inode)).isEqualTo(Stage.expected(-1, inode));
      assertThat(stage.source.operations().total()).isEqualTo(asked);

      Path file = dictionaries(tier).get(0);
      byte[] bytes = Files.readAllBytes(file);
      bytes[bytes.length / 2] ^= 1;
      Files.write(file, bytes);
      stage.restart();
      assertThat(stage.read(inode)).isEqualTo(Stage.expected(-1, inode));
      assertThat(stage.copies.mismatches()).isEqualTo(1);
      assertThat(dictionaries(tier)).isEmpty();
      stage.awaitIdle();
      assertThat(record(stage, inode).codec()).isEqualTo(ZstdCodec.NUMBER);
    }
  }

  @Test
  void read_noRoomToPutBlocksIntoOrder_isNotCopiedAgainAndAgain() throws Exception {
    try (Stage stage = new Stage(directory, 2L * BLOCK + 8192).with(ZSTD)) {
      Inode inode = stage.file("f", 1, 2L * BLOCK);
      Hold firstBlock = stage.faulty.on(READ).at(0).hold();
      assertThat(stage.read(inode, BLOCK, 1)).isEqualTo(FakeStore.content(1, BLOCK, 1));
      Await.until("the second block is stored", () -> !stage.files(0).isEmpty());
      firstBlock.release();
      stage.awaitIdle();

      assertThat(stage.copies.has(inode)).isFalse();
      assertThat(stage.stager.status().skippedNoRoom()).isEqualTo(1);
      stage.faulty.clearFaults();
      assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
      stage.awaitIdle();
      assertThat(stage.copies.has(inode)).as("readers do not have it copied again").isFalse();
      Staging staging = stage.stager.staging(Placement.ANYWHERE, Pace.UNLIMITED, bytes -> {});
      assertThat(staging.stage(inode).isThere()).as("in order").isTrue();
    }
  }

  private static List<Path> dictionaries(Path tier) throws Exception {
    try (var files = Files.newDirectoryStream(tier, "dictionary-*")) {
      List<Path> found = new ArrayList<>();
      files.forEach(found::add);
      return found;
    }
  }

  @Test
  void content_ofCopies_isCountedAndRecounted() throws Exception {
    try (Stage stage = new Stage(directory, ROOM).with(ZSTD)) {
      CopyFormat counted = new CopyFormat(ZSTD, Bundling.NONE, null, Runnable::run, 0L);
      stage.copies = TestCopies.of(stage.namespace, List.copyOf(stage.tiers), List.of(counted));
      stage.stager.close();
      stage.stager =
          new Stager(
              stage.namespace,
              stage.source,
              stage.copies,
              EvictionPolicy.NONE,
              Stage.SETTINGS,
              Share.ALL,
              Lenders.none(),
              () -> {});
      Inode one = stage.file("a", -1, 10_000);
      Inode other = stage.file("b", -1, 20_000);
      stage.stage(one);
      stage.stage(other);
      assertThat(counted.contentBytes()).isEqualTo(30_000);
      stage.copies.index().evict(one.number(), stage.tiers.get(0));
      assertThat(counted.contentBytes()).isEqualTo(20_000);
      stage.copies.drop(other.number());
      assertThat(counted.contentBytes()).isZero();
      stage.stage(one);
      stage.restart();
      stage.copies.compareWithRecords(stage.tiers.get(0), () -> false);
      assertThat(stage.copies.formats().get(0).contentBytes()).isEqualTo(10_000);
    }
  }

  @Test
  void fetch_thatFailsHalfway_leavesNothingBehind() throws Exception {
    try (Stage stage = new Stage(directory, ROOM).with(ZSTD)) {
      Inode inode = stage.file("f", -1, 3L * BLOCK);
      stage.faulty.on().from(2L * BLOCK).fail(Errno.EIO);
      stage.read(inode, 0, 1000);
      Await.until("the fetch failed", () -> stage.stager.status().failed() > 0);
      stage.awaitIdle();
      assertThat(stage.namespace.copies(inode.number())).isEmpty();
      assertThat(stage.tiers.get(0).status().usedBytes()).isZero();
      assertThat(stage.namespace.inode(Namespace.ROOT)).isNotNull();
    }
  }
}
