package io.pmfs.stage.formats;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.compression.ZstdProgram;
import io.pmfs.memory.CollectingSink;
import io.pmfs.memory.DirectMemory;
import io.pmfs.metadata.Checksums;
import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Inode;
import io.pmfs.stage.Stage;
import io.pmfs.tier.Tier;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class BlockWriterTest {
  private static final int BLOCK = Blocks.SIZE;
  private static final long ROOM = 64L << 20;
  private static final List<int[]> ORDERS =
      List.of(
          new int[] {0, 1, 2},
          new int[] {0, 2, 1},
          new int[] {1, 0, 2},
          new int[] {1, 2, 0},
          new int[] {2, 0, 1},
          new int[] {2, 1, 0});

  @TempDir Path directory;
  private final CopyFormat format =
      new CopyFormat(Compression.parse("zstd:1"), Bundling.NONE, null, Runnable::run, null);
  private final DirectMemory memory = new DirectMemory();

  private BlockWriter writer(Inode inode, Tier tier) {
    return Objects.requireNonNull(
        BlockWriter.create(inode, tier, format, format.bundling(), memory));
  }

  private static ByteBuffer block(byte[] content, int block) {
    byte[] bytes =
        Arrays.copyOfRange(content, block * BLOCK, Math.min(content.length, (block + 1) * BLOCK));
    return ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
  }

  @Test
  void commit_blocksInAnyOrder_givesAFileInOrder() throws Exception {
    for (int[] order : ORDERS) {
      Path place = directory.resolve(Arrays.toString(order));
      try (Stage stage = new Stage(place, ROOM)) {
        Inode inode = stage.file("f", -1, 2L * BLOCK + 70_000);
        byte[] content = Stage.expected(-1, inode);
        BlockWriter writer = writer(inode, stage.tiers.get(0));
        for (int block : order) {
          writer.write(block, block(content, block));
          CollectingSink sink = new CollectingSink();
          writer.copyTo((long) block * BLOCK + 5, 60_000, sink);
          assertThat(sink.answer())
              .isEqualTo(Arrays.copyOfRange(content, block * BLOCK + 5, block * BLOCK + 60_005));
        }
        CopyRecord record = writer.record(Checksums.of());
        stage.copies.index().commit(inode, writer, record, () -> true);
        // Readers of the fetch may still use it.
        CollectingSink sink = new CollectingSink();
        writer.copyTo(BLOCK, 1000, sink);
        assertThat(sink.answer()).isEqualTo(Arrays.copyOfRange(content, BLOCK, BLOCK + 1000));
        writer.close();
        writer.close();

        assertThat(stage.read(inode)).isEqualTo(content);
        assertThat(stage.copies.mismatches()).isZero();
        long stored = Files.size(stage.copyFile(0, inode));
        assertThat(record.storedSize()).isEqualTo(stored);
        assertThat(stage.tiers.get(0).status().usedBytes())
            .isEqualTo((stored + 4095) / 4096 * 4096);
        assertThat(stage.files(0)).hasSize(1);
        assertThat(memory.frames().isWhole()).isTrue();
      }
    }
  }

  @Test
  void commit_anyOrder_isDecodedByTheZstdProgram() throws Exception {
    ZstdProgram.assume();
    for (int[] order : ORDERS) {
      Path place = directory.resolve(Arrays.toString(order));
      try (Stage stage = new Stage(place, ROOM)) {
        Inode inode = stage.file("f", -1, 2L * BLOCK + 70_000);
        byte[] content = Stage.expected(-1, inode);
        BlockWriter writer = writer(inode, stage.tiers.get(0));
        for (int block : order) {
          writer.write(block, block(content, block));
        }
        stage.copies.index().commit(inode, writer, writer.record(Checksums.of()), () -> true);
        writer.close();
        Path decoded = place.resolve("decoded");
        ZstdProgram.run("-q", "-d", stage.copyFile(0, inode).toString(), "-o", decoded.toString());
        assertThat(Files.readAllBytes(decoded)).isEqualTo(content);
      }
    }
  }

  @Test
  void commit_noRoomForTheOrderedFile_fails() throws Exception {
    try (Stage stage = new Stage(directory, 2L * BLOCK + 8192)) {
      Inode inode = stage.file("f", 1, 2L * BLOCK);
      byte[] content = Stage.expected(1, inode);
      BlockWriter writer = writer(inode, stage.tiers.get(0));
      writer.write(1, block(content, 1));
      writer.write(0, block(content, 0));
      assertThatThrownBy(writer::commit).isInstanceOf(NoRoomException.class);
      writer.close();
      assertThat(stage.tiers.get(0).status().usedBytes()).isZero();
      assertThat(stage.files(0)).isEmpty();
    }
  }

  @Test
  void close_beforeCommit_leavesNothing() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", -1, 2L * BLOCK);
      BlockWriter writer = writer(inode, stage.tiers.get(0));
      writer.write(1, block(Stage.expected(-1, inode), 1));
      assertThat(stage.tiers.get(0).status().usedBytes()).isGreaterThan(2L * BLOCK);
      writer.close();
      assertThat(stage.tiers.get(0).status().usedBytes()).isZero();
      assertThat(stage.files(0)).isEmpty();
    }
  }
}
