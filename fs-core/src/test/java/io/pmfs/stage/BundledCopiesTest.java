package io.pmfs.stage;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.compression.ZstdCodec;
import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Extent;
import io.pmfs.metadata.Inode;
import io.pmfs.posix.Await;
import io.pmfs.stage.copies.Placement;
import io.pmfs.stage.formats.Blocks;
import io.pmfs.stage.formats.Bundling;
import io.pmfs.stage.formats.Compression;
import io.pmfs.stage.formats.CopyFormat;
import io.pmfs.tier.DirectPool;
import io.pmfs.tier.FaultyTier;
import io.pmfs.tier.TierStatus;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Copies that share bundles, as seen by the code above the tiers. */
final class BundledCopiesTest {
  private static final int BLOCK = Blocks.SIZE;
  private static final long ROOM = 256L << 20;

  /** With this capacity bundles are full at 64 KiB. */
  private static final long LITTLE_ROOM = 8L << 20;

  private static final int RAW_LIMIT = 256 << 10;

  @TempDir private Path directory;

  private Stage open(String compression, long capacity) throws Exception {
    return new Stage(directory, capacity).with(Compression.parse(compression)).with(Bundling.ALL);
  }

  private static CopyRecord record(Stage stage, Inode inode) {
    List<CopyRecord> copies = stage.namespace.copies(inode.number());
    assertThat(copies).hasSize(1);
    return copies.get(0);
  }

  private static Extent extent(Stage stage, Inode inode) {
    return Objects.requireNonNull(record(stage, inode).extent());
  }

  private void flip(long bundle, long offset) throws Exception {
    Path file = directory.resolve("tier0/bundles/%06x".formatted(bundle));
    try (FileChannel channel =
        FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
      ByteBuffer one = ByteBuffer.allocate(1);
      channel.read(one, offset);
      one.put(0, (byte) (one.get(0) ^ 4));
      channel.write(one.flip(), offset);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"none", "zstd:1", "auto:1"})
  void read_smallFiles_areTheirContentsInThisSessionAndTheNext(String compression)
      throws Exception {
    int[] sizes = {1, 100, 4096, 4097, 100_000, RAW_LIMIT, RAW_LIMIT + 1, BLOCK, BLOCK + 1};
    try (Stage stage = open(compression, ROOM)) {
      List<Inode> files = new ArrayList<>();
      for (int size : sizes) {
        for (long seed : new long[] {-size, size}) {
          files.add(stage.file(size + "-" + seed, seed, size));
        }
      }
      for (int pass = 0; pass < 3; pass++) {
        long asked = stage.source.operations().total();
        for (int i = 0; i < files.size(); i++) {
          Inode inode = stage.inode(files.get(i).name().toString());
          long seed = (i % 2 == 0 ? -1 : 1) * (long) sizes[i / 2];
          byte[] expected = Stage.expected(seed, inode);
          assertThat(stage.read(inode)).isEqualTo(expected);
          int half = expected.length / 2;
          assertThat(stage.read(inode, half, 1)).containsExactly(expected[half]);
        }
        stage.awaitIdle();
        if (pass > 0) {
          assertThat(stage.source.operations().total()).isEqualTo(asked);
          stage.restart();
        }
      }
      for (int i = 0; i < files.size(); i++) {
        CopyRecord copy = record(stage, files.get(i));
        boolean raw = copy.codec() == CopyFormat.RAW;
        assertThat(copy.extent() != null)
            .as("%s: %s", files.get(i).name(), copy)
            .isEqualTo(sizes[i / 2] <= (raw ? RAW_LIMIT : BLOCK));
        assertThat(raw)
            .isEqualTo(compression.equals("none") || (raw && compression.equals("auto:1")));
      }
      assertThat(stage.copies.mismatches()).isZero();
    }
  }

  @Test
  void read_compressedSmallFile_isASeekableFileInTheBundle() throws Exception {
    try (Stage stage = open("zstd:1", ROOM)) {
      stage.stage(stage.file("other", -2, 3000));
      Inode inode = stage.file("f", -1, 300_000);
      stage.stage(inode);

      CopyRecord copy = record(stage, inode);
      Extent extent = extent(stage, inode);
      assertThat(copy.codec()).isEqualTo(ZstdCodec.NUMBER);
      assertThat(copy.storedSize()).isEqualTo(extent.size());
      assertThat(extent.offset()).isPositive();
      Path bundle = directory.resolve("tier0/bundles/000001");
      ByteBuffer magic = ByteBuffer.allocate(4);
      try (FileChannel file = FileChannel.open(bundle)) {
        file.read(magic, extent.end() - 4);
      }
      assertThat(magic.array()).containsExactly(0xb1, 0xea, 0x92, 0x8f);
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"none", "zstd:1"})
  void read_byteOfTheBundleChanged_dropsThatCopyOnly(String compression) throws Exception {
    try (Stage stage = open(compression, ROOM)) {
      Inode good = stage.file("good", -1, 10_000);
      Inode bad = stage.file("bad", -2, 10_000);
      stage.stage(good);
      stage.stage(bad);
      Extent extent = extent(stage, bad);
      flip(extent.bundle(), extent.offset() + extent.size() / 3);
      stage.restart();

      assertThat(stage.read(bad)).isEqualTo(Stage.expected(-2, bad));
      assertThat(stage.copies.mismatches()).isEqualTo(1);
      assertThat(stage.read(good)).isEqualTo(Stage.expected(-1, good));
      stage.awaitIdle();
      assertThat(extent(stage, bad)).isNotEqualTo(extent);
      assertThat(stage.read(bad)).isEqualTo(Stage.expected(-2, bad));
      assertThat(stage.copies.mismatches()).isEqualTo(1);
    }
  }

  @Test
  void file_ofABundledCopy_isNone() throws Exception {
    try (Stage stage = open("none", ROOM)) {
      Inode small = stage.file("small", 1, 1000);
      Inode large = stage.file("large", 2, RAW_LIMIT + 1);
      stage.stage(small);
      stage.stage(large);

      assertThat(stage.stager.copyFile(small)).isNull();
      assertThat(stage.copies.isReadByUs(small)).isTrue();
      assertThat(stage.stager.copyFile(large)).isNotNull();
      assertThat(stage.copies.isReadByUs(large)).isFalse();
    }
  }

  @Test
  void bundling_ofCompressedOnly_leavesRawOnesFiles() throws Exception {
    try (Stage stage =
        new Stage(directory, ROOM).with(Compression.parse("auto")).with(Bundling.COMPRESSED)) {
      Inode raw = stage.file("raw", 1, 10_000);
      Inode compressed = stage.file("compressed", -1, 10_000);
      stage.stage(raw);
      stage.stage(compressed);

      assertThat(record(stage, raw).extent()).isNull();
      assertThat(record(stage, compressed).extent()).isNotNull();
    }
  }

  @Test
  void commit_newVersionOrOtherKind_removesWhatItReplaces() throws Exception {
    try (Stage stage = open("none", ROOM)) {
      Inode inode = stage.file("f", 1, 10_000);
      stage.stage(inode);
      stage.with(Bundling.NONE);
      // Recreated as a file after a copy was found bad.
      flip(1, 17);
      assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
      stage.awaitIdle();
      assertThat(record(stage, inode).extent()).isNull();
      assertThat(stage.tiers.get(0).status().usedBytes()).isEqualTo(3 * 4096);
      assertThat(stage.tiers.get(0).status().copies()).isEqualTo(1);
      assertThat(stage.files(0)).hasSize(1);
    }
  }

  @Test
  void compact_sparseBundles_movesWhatIsLeftAndKeepsPins() throws Exception {
    try (Stage stage = open("none", LITTLE_ROOM)) {
      List<Inode> files = fill(stage, 100);
      Staging pinning =
          stage.stager.staging(new Placement(null, true), Pace.UNLIMITED, bytes -> {});
      assertThat(pinning.stage(files.get(0)).isThere()).isTrue();
      for (int i = 0; i < 40; i++) {
        if (i % 8 != 0) {
          stage.copies.evict(files.get(i).number());
        }
      }
      TierStatus before = stage.tiers.get(0).status();

      assertThat(stage.copies.index().compact(stage.tiers.get(0))).isTrue();
      assertThat(stage.tiers.get(0).status().usedBytes()).isLessThan(before.usedBytes() - 200_000);
      assertThat(stage.tiers.get(0).status().copies()).isEqualTo(before.copies());
      assertThat(record(stage, files.get(0)).pinned()).isTrue();
      assertThat(extent(stage, files.get(0)).bundle()).isGreaterThan(5);
      assertThat(stage.copies.index().compact(stage.tiers.get(0))).isFalse();
      long asked = stage.source.operations().total();
      for (int i = 0; i < 40; i += 8) {
        assertThat(stage.read(files.get(i))).isEqualTo(Stage.expected(i, files.get(i)));
      }
      assertThat(stage.source.operations().total()).isEqualTo(asked);
      assertThat(stage.copies.mismatches()).isZero();
    }
  }

  /**
   * One buffer per copy, freed only by the garbage collector, would add up to the moved bytes: 8
   * MiB.
   */
  @Test
  void compact_manyCopies_movesThemThroughTheSameMemory() throws Exception {
    try (Stage stage = open("none", 64 << 20)) {
      List<Inode> files = fill(stage, 2000, 8192);
      for (int i = 0; i < files.size(); i += 2) {
        stage.copies.evict(files.get(i).number());
      }
      long direct = DirectPool.bytes();
      long used = stage.tiers.get(0).status().usedBytes();
      while (stage.copies.index().compact(stage.tiers.get(0))) {
        assertThat(DirectPool.bytes() - direct).isLessThan(3 << 20);
      }

      assertThat(stage.tiers.get(0).status().usedBytes()).isLessThan(used - (7 << 20));
      assertThat(stage.copies.mismatches()).isZero();
    }
  }

  /** A bundle holds more copies than the numbers kept in memory at once. */
  @Test
  void compact_thousandsOfTinyCopies_movesAll() throws Exception {
    try (Stage stage = open("none", 64 << 20)) {
      List<Inode> files = fill(stage, 9500, 60);
      for (int i = 0; i < files.size(); i++) {
        if (i % 5 < 2) {
          stage.copies.evict(files.get(i).number());
        }
      }

      assertThat(stage.copies.index().compact(stage.tiers.get(0))).isTrue();
      for (int i = 0; i < files.size(); i++) {
        assertThat(stage.copies.has(files.get(i))).isEqualTo(i % 5 >= 2);
        if (i % 500 == 499) {
          assertThat(extent(stage, files.get(i)).bundle()).isGreaterThan(1);
          assertThat(stage.read(files.get(i))).isEqualTo(Stage.expected(i, files.get(i)));
        }
      }
      assertThat(stage.copies.mismatches()).isZero();
    }
  }

  @Test
  void compact_tierThatCannotWrite_losesNothing() throws Exception {
    try (Stage stage = open("none", LITTLE_ROOM)) {
      List<Inode> files = fill(stage, 30);
      for (int i = 1; i < 8; i++) {
        stage.copies.evict(files.get(i).number());
      }
      stage.tiers.get(0).failAt(FaultyTier.Point.MOVE);

      assertThat(stage.copies.index().compact(stage.tiers.get(0))).isFalse();
      assertThat(stage.read(files.get(0))).isEqualTo(Stage.expected(0, files.get(0)));
      assertThat(stage.copies.has(files.get(0))).isTrue();
    }
  }

  @Test
  void stage_tierFullOfWhatNobodyWants_findsRoom() throws Exception {
    try (Stage stage = open("none", LITTLE_ROOM)) {
      List<Inode> files = fill(stage, 1023);
      Staging staging = stage.stager.staging(Placement.ANYWHERE, Pace.UNLIMITED, bytes -> {});
      Inode another = stage.file("another", 5000, RAW_LIMIT);
      assertThat(staging.stage(another).result()).isEqualTo(Staging.Outcome.Result.NO_ROOM);
      for (int i = 0; i < files.size(); i++) {
        if (i % 4 != 0) {
          stage.copies.evict(files.get(i).number());
        }
      }

      assertThat(staging.stage(another).result()).isEqualTo(Staging.Outcome.Result.STAGED);
      for (int i = 0; i < files.size(); i += 4) {
        assertThat(stage.copies.has(files.get(i))).isTrue();
      }
    }
  }

  @Test
  void read_tierFullOfWhatNobodyWants_makesRoomForTheNext() throws Exception {
    try (Stage stage = open("none", LITTLE_ROOM)) {
      List<Inode> files = fill(stage, 1023);
      for (int i = 0; i < files.size(); i++) {
        if (i % 4 != 0) {
          stage.copies.evict(files.get(i).number());
        }
      }
      Inode another = stage.file("another", 5000, RAW_LIMIT);
      Await.until(
          "it is copied",
          () -> {
            stage.read(another);
            stage.awaitIdle();
            return stage.copies.has(another);
          });
      assertThat(stage.read(another)).isEqualTo(Stage.expected(5000, another));
    }
  }

  /** Stages {@code count} files of 8 KiB, the i-th with seed i. */
  private static List<Inode> fill(Stage stage, int count) throws Exception {
    return fill(stage, count, 8192);
  }

  private static List<Inode> fill(Stage stage, int count, int size) throws Exception {
    for (int i = 0; i < count; i++) {
      stage.store.file("f" + i, i, size);
    }
    stage.importAll();
    Staging staging = stage.stager.staging(Placement.ANYWHERE, Pace.UNLIMITED, bytes -> {});
    List<Inode> files = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      Inode inode = stage.inode("f" + i);
      files.add(inode);
      assertThat(staging.stage(inode).isThere()).isTrue();
    }
    return files;
  }
}
