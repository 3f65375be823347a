package io.pmfs.tasks;

import static io.pmfs.source.FaultyStore.Operation.OPEN_NEXT;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.Errno;
import io.pmfs.source.FakeStore;
import io.pmfs.source.FaultyStore;
import io.pmfs.source.FaultyStore.Answer;
import io.pmfs.source.FaultyStore.Operation;
import io.pmfs.tasks.TaskProgress.State;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(120)
final class SequencePassTest {
  private static final int BLOCK = 1 << 20;
  private static final long ROOM = 256L << 20;
  private static final int FILES = 20;

  @TempDir private Path directory;

  private final List<String> asked = Collections.synchronizedList(new ArrayList<>());

  private Dataset packed(long capacity) throws Exception {
    Dataset dataset =
        new Dataset(
            directory,
            store -> {
              for (String parent : List.of("a", "b")) {
                store.directory(parent);
                for (int i = 10; i < 10 + FILES / 2; i++) {
                  store.file(parent + "/" + i, i, i == 15 ? 2L * BLOCK : i * 10L);
                }
              }
              store.hardLink("b/link", "a/10");
              store.pack(3);
            },
            capacity);
    record(dataset.faulty);
    return dataset;
  }

  private void record(FaultyStore store) {
    store.faults(
        (operation, path, offset) -> {
          if (operation == Operation.OPEN || operation == Operation.OPEN_NEXT) {
            asked.add(operation + " " + path);
          }
          return Answer.WHOLE;
        });
  }

  private static FileTask stage(Dataset dataset, String... paths) throws Exception {
    FileTask task = dataset.tasks.start(StageRequest.of(paths).request());
    assertThat(task.await(Duration.ofSeconds(60))).isTrue();
    assertThat(task.progress().state()).isEqualTo(State.ENDED);
    return task;
  }

  @Test
  void stage_ofAll_opensEachFileInItsSequenceOnly() throws Exception {
    try (Dataset dataset = packed(ROOM)) {
      TaskProgress progress = stage(dataset, "").progress();

      assertThat(asked).hasSize(FILES).allMatch(each -> each.startsWith("OPEN_NEXT"));
      assertThat(progress.isComplete()).isTrue();
      assertThat(progress.done()).isEqualTo(FILES);
      assertThat(progress.present()).isEqualTo(1);
      assertThat(progress.files()).isEqualTo(FILES + 1L);
      assertThat(progress.bytes()).isEqualTo(progress.totalBytes());
      dataset.asked();
      dataset.readAll();
      assertThat(dataset.asked().total()).isZero();
    }
  }

  @Test
  void stage_ofADirectory_opensOnlyWhatIsBelowAndLacksACopy() throws Exception {
    try (Dataset dataset = packed(ROOM)) {
      stage(dataset, "b/12");
      asked.clear();
      TaskProgress progress = stage(dataset, "b").progress();

      assertThat(asked)
          .hasSize(FILES / 2)
          .allMatch(each -> each.startsWith("OPEN_NEXT"))
          .contains("OPEN_NEXT b/link")
          .doesNotContain("OPEN_NEXT b/12", "OPEN_NEXT a/11");
      assertThat(progress.present()).isEqualTo(1);
      assertThat(progress.done()).isEqualTo(FILES / 2);
    }
  }

  @Test
  void stage_sequenceThatBreaksOff_takesTheRestOneByOne() throws Exception {
    try (Dataset dataset = packed(ROOM)) {
      dataset.faulty.on(OPEN_NEXT).of("a/12").fail(Errno.EIO);
      TaskProgress progress = stage(dataset, "").progress();

      assertThat(progress.isComplete()).isTrue();
      assertThat(progress.done()).isEqualTo(FILES);
      for (int i = 10; i < 10 + FILES / 2; i++) {
        int size = i == 15 ? 2 * BLOCK : i * 10;
        assertThat(dataset.read("a/" + i)).isEqualTo(FakeStore.content(i, 0, size));
        assertThat(dataset.store.bytesRead("a/" + i)).isEqualTo(size);
      }
    }
  }

  @Test
  void stage_withoutRoom_reportsEachFileOnce() throws Exception {
    try (Dataset dataset = packed(BLOCK)) {
      FileTask task = stage(dataset, "");

      assertThat(task.progress().noRoom()).isEqualTo(2);
      assertThat(task.findings(0, 9).stream().map(each -> each.path().toString()).sorted())
          .containsExactly("a/15", "b/15");
      assertThat(task.progress().files()).isEqualTo(FILES + 1L);
    }
  }

  /**
   * The requests of sequences are spaced like others: 20 files and 3 sequences, here with one
   * request each.
   */
  @Test
  void stage_ofSequencesAtAPace_countsTheirRequests() throws Exception {
    try (Dataset dataset = packed(ROOM)) {
      dataset.readNames();
      long start = System.nanoTime();
      FileTask task = dataset.tasks.start(StageRequest.of("").limits(4, 0, 20).request());
      assertThat(task.await(Duration.ofSeconds(60))).isTrue();

      assertThat(task.progress().isComplete()).isTrue();
      Duration took = Duration.ofNanos(System.nanoTime() - start);
      assertThat(took).isGreaterThan(Duration.ofSeconds(1));
    }
  }
}
