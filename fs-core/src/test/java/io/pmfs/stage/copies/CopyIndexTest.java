package io.pmfs.stage.copies;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Inode;
import io.pmfs.stage.Stage;
import io.pmfs.stage.formats.BlockWriter;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What other threads see of a new copy when open files of earlier ones are closed. */
final class CopyIndexTest {
  @TempDir private Path directory;
  private Stage stage;
  private Inode inode;

  /** Whether the copy was to be seen, at the first call after the copy was made. */
  private final List<Boolean> seen = new ArrayList<>();

  private CopyIndex index;

  @BeforeEach
  void open() throws Exception {
    stage = new Stage(directory.resolve("own"), 64 << 20);
    inode = stage.file("f", 1, 5_000);
    index =
        new CopyIndex(
            stage.namespace,
            stage.copies.tiers(),
            stage.copies.formats(),
            stage.copies.memory().store(),
            number -> seen.add(isSeen(number)));
  }

  @AfterEach
  void close() {
    stage.close();
  }

  private boolean isSeen(long number) {
    return Whereabouts.isInTier(index.known(number)) || !stage.namespace.copies(number).isEmpty();
  }

  @Test
  void commit_isSeenOnlyAfterFilesOfEarlierCopiesAreClosed() throws Exception {
    stage.stage(inode);
    CopyRecord record = record(stage);
    stage.copies.evict(inode.number());
    byte[] content = Stage.expected(1, inode);
    BlockWriter writer =
        Objects.requireNonNull(stage.copies.create(inode, stage.copies.tiers().get(0), true));
    writer.write(0, ByteBuffer.allocateDirect(content.length).put(content).flip());
    assertThat(index.commit(inode, writer, record, () -> true)).isTrue();
    writer.close();
    assertThat(isSeen(inode.number())).isTrue();
    assertThat(seen.get(0)).isFalse();
  }

  @Test
  void adopt_isSeenOnlyAfterFilesOfEarlierCopiesAreClosed() throws Exception {
    try (Stage other = new Stage(directory.resolve("other"), 64 << 20)) {
      Inode theirs = other.file("f", 1, 5_000);
      other.stage(theirs);
      Path tier = directory.resolve("other/tier0");
      LentCopy lent = new LentCopy(tier, theirs, record(other));
      assertThat(index.adopt(inode, stage.copies.tiers().get(0), lent)).isTrue();
    }
    assertThat(isSeen(inode.number())).isTrue();
    assertThat(seen.get(0)).isFalse();
  }

  private static CopyRecord record(Stage stage) {
    return stage.copies.records(stage.inode("f").number()).get(0);
  }
}
