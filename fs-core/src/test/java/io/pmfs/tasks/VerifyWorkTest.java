package io.pmfs.tasks;

import static io.pmfs.source.FaultyStore.Operation.READ;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.source.FakeStore;
import io.pmfs.tasks.TaskProgress.State;
import io.pmfs.tier.DirectPool;
import io.pmfs.tier.FaultyTier.Point;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(120)
final class VerifyWorkTest {
  private static final int BLOCK = 1 << 20;
  private static final int FILES = 6;

  @TempDir private Path directory;

  private Dataset staged() throws Exception {
    Dataset dataset =
        new Dataset(
            directory,
            store -> {
              store.directory("d");
              for (int i = 0; i < FILES; i++) {
                store.file("d/f" + i, i, BLOCK - 2 + i);
              }
              store.file("other", 99, 10);
            },
            256L << 20);
    ended(dataset, StageRequest.of("d").limits(2, 0, 0).request());
    dataset.asked();
    return dataset;
  }

  private static FileTask ended(Dataset dataset, TaskRequest request) throws Exception {
    FileTask task = dataset.tasks.start(request);
    assertThat(task.await(Duration.ofSeconds(60))).isTrue();
    assertThat(task.progress().state()).isEqualTo(State.ENDED);
    return task;
  }

  private static FileTask verify(Dataset dataset, boolean withSource, boolean repair)
      throws Exception {
    return ended(
        dataset,
        new TaskRequest.Verify(TaskPaths.of(List.of(FileName.of(""))), withSource, repair));
  }

  private static List<String> findings(FileTask task) {
    return task.findings(0, 1000).stream()
        .map(finding -> finding.kind() + " " + finding.path())
        .sorted()
        .toList();
  }

  private Path copy(Dataset dataset, String path) throws Exception {
    return directory.resolve("tier0/copies/00/00/%06x".formatted(dataset.number(path)));
  }

  private static void flip(Path file, int at) throws IOException {
    byte[] bytes = Files.readAllBytes(file);
    bytes[at] ^= 4;
    Files.write(file, bytes);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void verify_ofGoodCopies_countsThemAndReportsNothing(boolean withSource) throws Exception {
    try (Dataset dataset = staged()) {
      FileTask task = verify(dataset, withSource, false);

      assertThat(task.progress().isComplete()).isTrue();
      assertThat(task.progress().done()).isEqualTo(FILES);
      assertThat(task.progress().bytes()).isEqualTo(task.progress().totalBytes());
      assertThat(dataset.asked().bytes())
          .isEqualTo(withSource ? FILES * (long) BLOCK - 12 + 15 : 0);
    }
  }

  /**
   * One block of memory per file, freed only by the garbage collector, was 5.6 GB for 6,000 files.
   */
  @Test
  void verify_withSource_takesItsMemoryOnce() throws Exception {
    try (Dataset dataset = staged()) {
      verify(dataset, true, false);
      long direct = DirectPool.bytes();
      for (int round = 0; round < 10; round++) {
        verify(dataset, true, false);
      }

      assertThat(DirectPool.bytes() - direct).isLessThan(16 << 20);
    }
  }

  /** A tier of an earlier mount that this mount does not have. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void verify_withRecordsOfATierThatIsNotConfigured_looksAtTheOthers(boolean repair)
      throws Exception {
    try (Dataset dataset = staged()) {
      for (String path : List.of("d/f0", "other")) {
        CopyRecord copy =
            dataset.namespace.copies(dataset.number("d/f0")).stream().findFirst().orElseThrow();
        dataset.namespace.putCopy(
            dataset.number(path),
            new CopyRecord(
                "gone:/tier",
                copy.codec(),
                dataset.inode(path).attributes().version(),
                copy.storedSize(),
                copy.blockSize(),
                copy.checksums(),
                false,
                null));
      }
      FileTask task = verify(dataset, false, repair);

      assertThat(findings(task)).isEmpty();
      assertThat(task.progress().done()).isEqualTo(FILES);
      assertThat(task.progress().present()).as("without a copy").isEqualTo(1);
      dataset.asked();
      assertThat(dataset.read("d/f0"))
          .isEqualTo(dataset.store.expected(FileName.of("d/f0"), 0, BLOCK));
      assertThat(dataset.asked().reads()).as("its good copy is used").isZero();
      assertThat(dataset.namespace.copy(dataset.number("other"), "gone:/tier"))
          .as("kept for a mount that has the tier again")
          .isNotNull();
    }
  }

  @Test
  void verify_ofATierThatFailed_saysSo() throws Exception {
    try (Dataset dataset = staged()) {
      dataset.tiers.get(0).fail("it smokes");
      FileTask task = verify(dataset, false, false);

      assertThat(task.progress().done()).isZero();
      assertThat(task.findings(0, 10))
          .hasSize(FILES)
          .allMatch(finding -> finding.reason().equals("the tier failed: it smokes"));
    }
  }

  @Test
  void verify_ofACopyThatWasGoodInThisSession_readsItAnew() throws Exception {
    try (Dataset dataset = staged()) {
      dataset.read("d/f4");
      flip(copy(dataset, "d/f4"), BLOCK + 1);
      FileTask task = verify(dataset, false, false);

      assertThat(findings(task)).containsExactly("BAD d/f4");
      assertThat(task.findings(0, 1).get(0).reason()).contains("ssd:0", "block 1");
      assertThat(task.progress().done()).isEqualTo(FILES - 1);
      assertThat(task.progress().isComplete()).isFalse();
    }
  }

  @Test
  void verify_withoutRepair_leavesTheBadCopyAndServesItNoMore() throws Exception {
    try (Dataset dataset = staged()) {
      Path bad = copy(dataset, "d/f1");
      flip(bad, 100);
      List<Long> gone = new ArrayList<>();
      dataset.fs.onCopyGone(gone::add);
      verify(dataset, false, false);

      assertThat(bad).exists();
      assertThat(gone).containsExactly(dataset.number("d/f1"));
      assertThat(dataset.fs.copyFile(dataset.number("d/f1"))).isNull();
      assertThat(dataset.read("d/f1")).isEqualTo(FakeStore.content(1, 0, BLOCK - 1));
      dataset.awaitIdle();
      assertThat(verify(dataset, false, false).progress().isComplete()).isTrue();
      assertThat(dataset.copyCount()).isEqualTo(FILES);
    }
  }

  @Test
  void verify_withRepair_dropsWhatIsBadTruncatedOrNotThere() throws Exception {
    try (Dataset dataset = staged()) {
      flip(copy(dataset, "d/f1"), 100);
      Files.write(copy(dataset, "d/f2"), new byte[7]);
      Files.delete(copy(dataset, "d/f3"));
      FileTask task = verify(dataset, false, true);

      assertThat(findings(task)).containsExactly("BAD d/f1", "BAD d/f2", "BAD d/f3");
      assertThat(copy(dataset, "d/f1")).doesNotExist();
      assertThat(dataset.namespace.copies(dataset.number("d/f3"))).isEmpty();
      FileTask again = verify(dataset, false, true);
      assertThat(again.progress().isComplete()).isTrue();
      assertThat(again.progress().done()).isEqualTo(FILES - 3);
    }
  }

  @Test
  void verify_withSourceThatChangedBehindItsTimesBack_isBadAndSaysSo() throws Exception {
    try (Dataset dataset = staged()) {
      dataset.store.writeSecretly("d/f5", 1234, BLOCK + 3);
      assertThat(verify(dataset, false, false).progress().isComplete()).isTrue();
      FileTask task = verify(dataset, true, true);

      assertThat(findings(task)).containsExactly("BAD d/f5");
      assertThat(task.findings(0, 1).get(0).reason()).contains("source", "modification time");
      assertThat(dataset.read("d/f5")).isEqualTo(FakeStore.content(1234, 0, BLOCK + 3));
    }
  }

  @Test
  void verify_withSourceThatHasANewVersion_isStaleAndTheCopyGoes() throws Exception {
    try (Dataset dataset = staged()) {
      dataset.store.write("d/f5", 7, BLOCK);
      FileTask task = verify(dataset, true, false);

      assertThat(findings(task)).containsExactly("STALE d/f5");
      assertThat(task.progress().done()).isEqualTo(FILES - 1);
      assertThat(dataset.read("d/f5")).isEqualTo(FakeStore.content(7, 0, BLOCK));
    }
  }

  @Test
  void verify_withSourceThatFails_isReported() throws Exception {
    try (Dataset dataset = staged()) {
      dataset.faulty.on(READ).of("d/f0").fail(Errno.EIO);

      assertThat(findings(verify(dataset, true, false))).containsExactly("FAILED d/f0");
    }
  }

  @Test
  void verify_ofATierThatFails_isReported() throws Exception {
    try (Dataset dataset = staged()) {
      dataset.tiers.get(0).failAt(Point.READ);
      FileTask task = verify(dataset, false, false);

      assertThat(task.progress().isComplete()).isFalse();
      assertThat(task.findings(0, 1).get(0).kind()).isEqualTo(TaskFinding.Kind.FAILED);
    }
  }
}
