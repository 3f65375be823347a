package io.pmfs.tasks;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Extent;
import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.Errno;
import io.pmfs.posix.Requested;
import io.pmfs.source.FakeStore;
import io.pmfs.stage.copies.EvictionPolicy;
import io.pmfs.stage.copies.LeastRecentlyUsed;
import io.pmfs.stage.formats.Bundling;
import io.pmfs.tasks.TaskProgress.State;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Random tasks one after the other, some of them cancelled, while readers read and compare: every
 * byte must be the source's. {@code -Dpmfs.model.seed=N} runs one seed.
 */
@Timeout(120)
final class TaskModelTest {
  private static final int SEEDS = Requested.count("large", 6, 2);
  private static final int TASKS = 25;
  private static final int READERS = 2;
  private static final int BLOCK = 1 << 20;

  @TempDir private Path directory;

  static LongStream seeds() {
    Long one = Long.getLong("pmfs.model.seed");
    return one == null ? LongStream.range(0, SEEDS) : LongStream.of(one);
  }

  @ParameterizedTest(name = "seed {0}")
  @MethodSource("seeds")
  void readers_duringRandomTasks_getTheSourcesBytes(long seed) throws Exception {
    Random random = new Random(seed);
    ExecutorService readers = Executors.newFixedThreadPool(READERS);
    // Too small for all files, so that some find no room, or are evicted and staged again.
    try (Dataset dataset =
        new Dataset(
            directory,
            seed % 2 == 0 ? Bundling.NONE : Bundling.ALL,
            store -> grow(store, random),
            3L * BLOCK,
            6L * BLOCK)) {
      if (random.nextBoolean()) {
        dataset.store.pack(3);
      }
      for (int session = 0; session < 2; session++) {
        AtomicBoolean stop = new AtomicBoolean();
        List<Future<Boolean>> running = new ArrayList<>();
        for (int i = 0; i < READERS; i++) {
          Random own = new Random(random.nextLong());
          running.add(readers.submit(() -> readUntil(stop, dataset, own)));
        }
        for (int i = 0; i < TASKS; i++) {
          runOne(dataset, random);
        }
        stop.set(true);
        for (Future<Boolean> reader : running) {
          assertThat(reader.get()).isTrue();
        }
        dataset.readAll();
        assertTiersMatchRecords(dataset);
        rot(random);
        EvictionPolicy eviction =
            random.nextBoolean() ? EvictionPolicy.NONE : new LeastRecentlyUsed(new Random(seed));
        dataset.remount(store -> {}, eviction);
      }
      dataset.readAll();
    } finally {
      readers.shutdownNow();
    }
  }

  /**
   * Copies are deleted and truncated at random between tasks: files that {@code stage} then reports
   * as present are read while the source fails every request.
   */
  @ParameterizedTest(name = "seed {0}")
  @MethodSource("seeds")
  void stage_afterCopiesWereHarmed_allIsReadWithoutTheSource(long seed) throws Exception {
    Random random = new Random(seed);
    try (Dataset dataset =
        new Dataset(
            directory,
            seed % 2 == 0 ? Bundling.NONE : Bundling.ALL,
            store -> grow(store, random),
            3L * BLOCK,
            64L * BLOCK)) {
      for (int round = 0; round < 12; round++) {
        if (random.nextInt(4) == 0) {
          dataset.remount(store -> {});
        }
        for (int i = random.nextInt(4); i > 0; i--) {
          runOne(dataset, random);
        }
        harm(random);
        assertStagedIsThere(dataset, "-Dpmfs.model.seed=" + seed + ", round " + round);
      }
    }
  }

  private void assertStagedIsThere(Dataset dataset, String at) throws Exception {
    List<FileName> all = List.of(FileName.of(""));
    FileTask stage = dataset.tasks.start(StageRequest.of(TaskPaths.of(all)).request());
    assertThat(stage.await(Duration.ofSeconds(60))).as(at).isTrue();
    assertThat(stage.progress().isComplete()).as("%s: %s", at, stage.findings(0, 9)).isTrue();
    FileTask check = dataset.tasks.start(new TaskRequest.Check(TaskPaths.of(all), false, true));
    assertThat(check.await(Duration.ofSeconds(60))).as(at).isTrue();
    assertThat(check.progress().isComplete()).as("%s: %s", at, check.findings(0, 9)).isTrue();
    dataset.faulty.on().fail(Errno.EIO);
    for (FileName path : files(dataset)) {
      assertThat(dataset.read(dataset.number(path), 0, 3 * BLOCK))
          .as("%s: %s", at, path)
          .isEqualTo(dataset.store.expected(path, 0, 3 * BLOCK));
    }
    dataset.faulty.clearFaults();
  }

  /** Like scratch purgers, and file systems that lose data. */
  private void harm(Random random) throws IOException {
    List<Path> files;
    try (Stream<Path> all = Files.walk(directory)) {
      files =
          all.filter(file -> file.toString().matches(".*/tier./(copies|bundles)/.*"))
              .filter(Files::isRegularFile)
              .sorted()
              .toList();
    }
    for (Path file : files) {
      switch (random.nextInt(6)) {
        case 0 -> Files.deleteIfExists(file);
        case 1 -> {
          try (FileChannel open = FileChannel.open(file, StandardOpenOption.WRITE)) {
            open.truncate(random.nextLong(open.size() + 1));
          }
        }
        default -> {}
      }
    }
  }

  private static void grow(FakeStore store, Random random) {
    for (String parent : List.of("a", "b", "b/c")) {
      store.directory(parent);
      for (int i = 0; i < 8; i++) {
        int size =
            switch (random.nextInt(6)) {
              case 0 -> 0;
              case 1 -> BLOCK - 1 + random.nextInt(3);
              case 2 -> 2 * BLOCK + random.nextInt(9);
              default -> random.nextInt(100_000);
            };
        store.file(parent + "/" + i, random.nextInt(1000), size);
      }
    }
    store.hardLink("a/again", "b/0");
    store.symbolicLink("a/link", "0");
  }

  private static List<FileName> files(Dataset dataset) {
    return dataset.store.paths().stream()
        .filter(path -> dataset.store.expectedStatus(path).attributes().type() == FileType.REGULAR)
        .toList();
  }

  private static boolean readUntil(AtomicBoolean stop, Dataset dataset, Random random)
      throws Exception {
    List<FileName> files = files(dataset);
    while (!stop.get()) {
      FileName path = files.get(random.nextInt(files.size()));
      int offset = random.nextInt(2 * BLOCK);
      int count = 1 + random.nextInt(300_000);
      assertThat(dataset.read(dataset.number(path), offset, count))
          .as("%s from %d, %d bytes", path, offset, count)
          .isEqualTo(dataset.store.expected(path, offset, count));
    }
    return true;
  }

  private static void runOne(Dataset dataset, Random random) throws Exception {
    TaskRequest request = request(dataset, random);
    FileTask task = dataset.tasks.start(request);
    if (request instanceof TaskRequest.Prefetch || random.nextInt(4) == 0) {
      task.await(Duration.ofMillis(random.nextInt(40)));
      task.cancel();
    }
    assertThat(task.await(Duration.ofSeconds(60))).as("%s", request).isTrue();
    TaskProgress progress = task.progress();
    assertThat(progress.state()).as("%s", progress).isIn(State.ENDED, State.CANCELLED);
    if (progress.state() == State.ENDED) {
      assertThat(progress.bytes()).isEqualTo(progress.totalBytes());
      assertThat(task.findings(0, 1000))
          .allMatch(finding -> finding.kind() != TaskFinding.Kind.FAILED);
    }
  }

  private static TaskRequest request(Dataset dataset, Random random) {
    List<FileName> all = List.copyOf(dataset.store.paths());
    List<FileName> paths = new ArrayList<>();
    for (int i = random.nextInt(5); i >= 0; i--) {
      paths.add(all.get(random.nextInt(all.size())));
    }
    TaskRequest.Limits limits = new TaskRequest.Limits(1 + random.nextInt(6), 0, 0);
    return switch (random.nextInt(7)) {
      case 0 -> new TaskRequest.Check(TaskPaths.of(paths), false, false);
      case 1 -> new TaskRequest.Evict(TaskPaths.of(paths));
      case 2 ->
          new TaskRequest.Verify(TaskPaths.of(paths), random.nextBoolean(), random.nextBoolean());
      case 3 ->
          new TaskRequest.Prefetch(
              TaskPaths.of(files(dataset)), limits, 1 + random.nextInt(4 * BLOCK), 0);
      default ->
          new TaskRequest.Stage(
              TaskPaths.of(paths),
              limits,
              random.nextInt(3) == 0 ? "ssd:" + random.nextInt(2) : null,
              random.nextInt(10) == 0,
              random.nextInt(10) == 0,
              false);
    };
  }

  /** Each file in a tier has a record, and each record a file. */
  private void assertTiersMatchRecords(Dataset dataset) throws Exception {
    dataset.awaitIdle();
    for (int tier = 0; tier < dataset.tiers.size(); tier++) {
      List<CopyRecord> recorded = recorded(dataset, "ssd:" + tier);
      assertThat(dataset.tiers.get(tier).status().copies()).isEqualTo(recorded.size());
      assertThat(copies(tier)).hasSize(filesOf(recorded));
    }
  }

  private static List<CopyRecord> recorded(Dataset dataset, String tier) {
    List<CopyRecord> recorded = new ArrayList<>();
    dataset.namespace.listCopies(
        0,
        (number, copy) -> {
          if (copy.tier().equals(tier)) {
            recorded.add(copy);
          }
          return true;
        });
    return recorded;
  }

  /** The number of files that hold the copies: one each, or bundles. */
  private static int filesOf(List<CopyRecord> copies) {
    Set<Object> files = new HashSet<>();
    for (CopyRecord copy : copies) {
      Extent extent = copy.extent();
      files.add(extent == null ? new Object() : extent.bundle());
    }
    return files.size();
  }

  private List<Path> copies(int tier) throws IOException {
    try (Stream<Path> all = Files.walk(directory.resolve("tier" + tier))) {
      return all.filter(Files::isRegularFile)
          .filter(file -> !file.endsWith("lock"))
          .sorted()
          .toList();
    }
  }

  /** Damages a copy or two on the disk between sessions. */
  private void rot(Random random) throws IOException {
    for (Path copy : copies(random.nextInt(2))) {
      byte[] content = Files.readAllBytes(copy);
      if (content.length > 0 && random.nextInt(4) == 0) {
        content[random.nextInt(content.length)] ^= 1;
        Files.write(copy, content);
      }
    }
  }
}
