package io.pmfs.tasks;

import static io.pmfs.source.FaultyStore.Operation.OPEN;
import static io.pmfs.source.FaultyStore.Operation.READ;
import static io.pmfs.source.FaultyStore.Operation.STATUS;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.source.FakeStore;
import io.pmfs.stage.Pace;
import io.pmfs.stage.Staging;
import io.pmfs.stage.copies.Placement;
import io.pmfs.tasks.TaskProgress.State;
import io.pmfs.tier.Hold;
import java.io.OutputStream;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(120)
final class PrefetchWorkTest {
  private static final int FILES = 200;
  private static final int SIZE = 64 << 10;
  private static final long WINDOW = 20L * SIZE;
  private static final TaskRequest.Limits LIMITS = new TaskRequest.Limits(3, 0, 0);

  @TempDir private Path directory;

  private Dataset dataset(long capacity) throws Exception {
    return new Dataset(
        directory,
        store -> {
          store.directory("d");
          for (int i = 0; i < FILES; i++) {
            store.file(name(i), i, SIZE);
          }
        },
        capacity);
  }

  private static String name(int i) {
    return "d/f" + i;
  }

  private static List<Integer> shuffled(int epochs, long seed) {
    List<Integer> order = new ArrayList<>();
    Random random = new Random(seed);
    for (int epoch = 0; epoch < epochs; epoch++) {
      List<Integer> once = new ArrayList<>();
      for (int i = 0; i < FILES; i++) {
        once.add(i);
      }
      Collections.shuffle(once, random);
      order.addAll(once);
    }
    return order;
  }

  private static FileTask start(Dataset dataset, List<Integer> order) {
    return dataset.tasks.start(
        new TaskRequest.Prefetch(
            TaskPaths.of(order.stream().map(i -> FileName.of(name(i))).toList()),
            LIMITS,
            WINDOW,
            0));
  }

  private static void read(Dataset dataset, int i) throws Exception {
    assertThat(dataset.read(name(i))).isEqualTo(FakeStore.content(i, 0, SIZE));
  }

  @Test
  void prefetch_withoutAReader_stagesAWindowAndNoMore() throws Exception {
    try (Dataset dataset = dataset(1L << 30)) {
      FileTask task = start(dataset, shuffled(1, 1));
      Await.until("the window is full", () -> task.progress().done() == 20);

      assertThat(dataset.copyCount()).isEqualTo(20);
      task.cancel();
      assertThat(task.await(Duration.ofSeconds(20))).isTrue();
      assertThat(task.progress().state()).isEqualTo(State.CANCELLED);
      assertThat(dataset.copyCount()).as("what is there stays").isEqualTo(20);
    }
  }

  @Test
  void prefetch_ofTwoEpochsThroughATierThatHoldsAnEighth_servesAllAndEnds() throws Exception {
    List<Integer> order = shuffled(2, 2);
    try (Dataset dataset = dataset(WINDOW + 5L * SIZE)) {
      FileTask task = start(dataset, order);
      for (int i = 0; i < order.size(); i++) {
        int at = i;
        Await.until("it is ahead", () -> isThere(dataset, order.get(at)));
        read(dataset, order.get(i));
        assertThat(dataset.tiers.get(0).status().usedBytes()).isLessThanOrEqualTo(WINDOW + SIZE);
      }
      assertThat(task.await(Duration.ofSeconds(20))).isTrue();

      TaskProgress progress = task.progress();
      assertThat(progress.state()).isEqualTo(State.ENDED);
      assertThat(progress.isComplete()).isTrue();
      assertThat(progress.files()).isEqualTo(2L * FILES);
      assertThat(dataset.copyCount()).isZero();
      assertThat(dataset.stager.readOrigins().source().bytes()).as("readers never waited").isZero();
    }
  }

  private static boolean isThere(Dataset dataset, int i) throws Exception {
    return dataset.copies.has(dataset.inode(name(i)));
  }

  @Test
  void prefetch_withWorkersAheadOfOneAnother_readsEachFileOnceAndDropsAll() throws Exception {
    List<Integer> order = shuffled(1, 3);
    ExecutorService workers = Executors.newFixedThreadPool(4);
    try (Dataset dataset = dataset(1L << 30)) {
      FileTask task = start(dataset, order);
      AtomicInteger next = new AtomicInteger();
      List<Future<?>> running = new ArrayList<>();
      for (int worker = 0; worker < 4; worker++) {
        running.add(
            workers.submit(
                () -> {
                  for (int i; (i = next.getAndIncrement()) < order.size(); ) {
                    read(dataset, order.get(i));
                  }
                  return true;
                }));
      }
      for (Future<?> each : running) {
        each.get();
      }
      assertThat(task.await(Duration.ofSeconds(60))).isTrue();
      dataset.awaitIdle();

      assertThat(task.progress().state()).isEqualTo(State.ENDED);
      assertThat(task.progress().failed()).isZero();
      for (int i = 0; i < FILES; i++) {
        // A reader that is ahead of the window may itself copy a file that has left.
        assertThat(dataset.store.bytesRead(name(i))).isBetween((long) SIZE, 2L * SIZE);
      }
    } finally {
      workers.shutdownNow();
    }
  }

  @Test
  void prefetch_ofPinnedFiles_leavesThemAlone() throws Exception {
    try (Dataset dataset = dataset(1L << 30)) {
      FileTask pin = dataset.tasks.start(StageRequest.of(name(0)).pinned().request());
      assertThat(pin.await(Duration.ofSeconds(20))).isTrue();
      FileTask task = start(dataset, List.of(0, 1, 2));
      for (int i = 0; i < 3; i++) {
        int at = i;
        Await.until("it is ahead", () -> isThere(dataset, at));
        read(dataset, i);
      }
      assertThat(task.await(Duration.ofSeconds(20))).isTrue();

      assertThat(isThere(dataset, 0)).isTrue();
      assertThat(isThere(dataset, 1)).isFalse();
      assertThat(isThere(dataset, 2)).isFalse();
    }
  }

  @Test
  void prefetch_ofPathsThatAreNotThere_reportsThemAndGoesOn() throws Exception {
    try (Dataset dataset = dataset(1L << 30)) {
      FileTask task = start(dataset, List.of(1, FILES + 5, 2, FILES + 6));
      for (int i : List.of(1, 2)) {
        Await.until("it is ahead", () -> isThere(dataset, i));
        read(dataset, i);
      }
      assertThat(task.await(Duration.ofSeconds(20))).isTrue();

      assertThat(task.progress().failed()).isEqualTo(2);
      assertThat(task.progress().files()).isEqualTo(4);
      assertThat(task.findings(0, 9)).allMatch(f -> f.kind() == TaskFinding.Kind.NOT_FOUND);
    }
  }

  @Test
  void prefetch_forAKernelThatReadsByItself_followsItsOpens() throws Exception {
    List<Integer> order = shuffled(1, 4);
    try (Dataset dataset = dataset(1L << 30)) {
      FileTask task = start(dataset, order);
      for (int i : order) {
        Await.until("it is ahead", () -> isThere(dataset, i));
        assertThat(dataset.fs.copyFile(dataset.number(name(i)))).isNotNull();
        assertThat(dataset.tiers.get(0).status().usedBytes()).isLessThanOrEqualTo(WINDOW + SIZE);
      }
      assertThat(task.await(Duration.ofSeconds(20))).isTrue();

      assertThat(task.progress().isComplete()).isTrue();
      assertThat(dataset.copyCount()).isLessThan(20);
    }
  }

  /**
   * A reader that finds no room reads from the source; when there is room, it is already reading
   * the file.
   */
  @Test
  void prefetch_fileThatAReaderReadsWithoutACopy_isNotReadTwice() throws Exception {
    try (Dataset dataset = dataset(2L * SIZE)) {
      Hold reads = dataset.faulty.on(READ).of(name(2)).hold();
      read(dataset, 0);
      read(dataset, 1);
      Await.until("a full tier", () -> dataset.copyCount() == 2);
      FileTask task = start(dataset, List.of(0, 1, 2));
      Await.until("two are there", () -> task.progress().present() == 2);
      ExecutorService reader = Executors.newSingleThreadExecutor();
      try {
        Future<byte[]> read = reader.submit(() -> dataset.read(name(2)));
        reads.awaitReached();
        dataset.copies.evict(dataset.inode(name(0)).number());
        Thread.sleep(300); // long enough for several further attempts
        reads.release();
        assertThat(read.get()).isEqualTo(FakeStore.content(2, 0, SIZE));
        Await.until("it is passed by", () -> task.progress().files() == 3);
      } finally {
        reads.release();
        reader.shutdownNow();
      }

      assertThat(reads.count()).isEqualTo(1);
      assertThat(task.progress().noRoom()).isZero();
    }
  }

  /** Reads answered from the kernel's cache are not visible to pmfs. */
  @Test
  void prefetch_ofFilesThatTheKernelAnswers_jumpsToTheReader() throws Exception {
    List<Integer> order = shuffled(1, 5);
    try (Dataset dataset = dataset(1L << 30)) {
      FileTask task = start(dataset, order);
      Await.until("the window is full", () -> task.progress().done() == 20);
      for (int i = 100; i < FILES; i++) {
        read(dataset, order.get(i));
      }
      assertThat(task.await(Duration.ofSeconds(60))).isTrue();

      assertThat(task.progress().isComplete()).isTrue();
      assertThat(task.progress().files()).isEqualTo(FILES);
      dataset.awaitIdle();
      assertThat(isThere(dataset, order.get(3))).as("what was skipped is dropped").isFalse();
      assertThat(dataset.store.bytesRead(name(order.get(50)))).as("and not copied").isZero();
    }
  }

  @Test
  void prefetch_whileOtherFilesAreRead_staysWhereItIs() throws Exception {
    List<Integer> order = shuffled(1, 6).subList(0, 100);
    List<Integer> others = shuffled(1, 6).subList(100, FILES);
    try (Dataset dataset = dataset(1L << 30)) {
      FileTask task = start(dataset, order);
      Await.until("the window is full", () -> task.progress().done() == 20);
      for (int i : others) {
        read(dataset, i);
      }
      for (int i : order) {
        Await.until("it is ahead", () -> isThere(dataset, i));
        read(dataset, i);
      }
      assertThat(task.await(Duration.ofSeconds(60))).isTrue();

      assertThat(task.progress().done()).isEqualTo(100);
    }
  }

  @Test
  void prefetch_fromAPosition_leavesOutWhatIsBeforeIt() throws Exception {
    List<Integer> order = shuffled(1, 7);
    try (Dataset dataset = dataset(1L << 30)) {
      TaskRequest.Prefetch request =
          new TaskRequest.Prefetch(
              TaskPaths.of(order.stream().map(i -> FileName.of(name(i))).toList()),
              LIMITS,
              WINDOW,
              0);
      FileTask first = dataset.tasks.start(request);
      for (int i : order.subList(0, 150)) {
        Await.until("it is ahead", () -> isThere(dataset, i));
        read(dataset, i);
      }
      Await.until("the position", () -> first.position() == 150);
      first.cancel();
      assertThat(first.await(Duration.ofSeconds(20))).isTrue();

      FileTask task = dataset.tasks.start(request.from(first.position()));
      // The first task's copies exist, so their files may be read before this task checks.
      Await.until("it looks at what is read", () -> task.progress().files() >= 150);
      for (int i : order.subList(150, FILES)) {
        Await.until("it is ahead", () -> isThere(dataset, i));
        read(dataset, i);
      }
      assertThat(task.await(Duration.ofSeconds(20))).isTrue();

      assertThat(task.progress().isComplete()).isTrue();
      assertThat(task.progress().files()).isEqualTo(FILES);
      assertThat(dataset.store.bytesRead(name(order.get(0)))).isEqualTo(SIZE);
      Await.until("all are dropped", () -> dataset.copyCount() == 0);
    }
  }

  @Test
  void prefetch_ofDirectoriesAndUnknownPaths_reportsTheirLinesAtOnce() throws Exception {
    try (Dataset dataset = dataset(1L << 30)) {
      Path file = directory.resolve("order");
      try (OutputStream out = Files.newOutputStream(file)) {
        PathFile.Writer list = new PathFile.Writer(out);
        for (int i = 0; i < 100; i++) {
          list.add(i == 98 ? null : FileName.of(i == 97 ? "d" : i == 99 ? "gone" : name(i)));
        }
        list.end();
      }
      PathFile list = PathFile.open(FileChannel.open(file, StandardOpenOption.READ), file, 0);
      FileTask task = dataset.tasks.start(new TaskRequest.Prefetch(list, LIMITS, WINDOW, 0));
      Await.until("both are reported, far ahead", () -> task.progress().failed() == 2);

      assertThat(task.findings(0, 9).stream().map(f -> f.path() + ": " + f.reason()))
          .containsExactlyInAnyOrder(
              "d: line 98: it is a directory; an order must name regular files",
              "gone: line 100: there is no such path");
      assertThat(task.progress().state()).isEqualTo(State.RUNNING);
      task.cancel();
      assertThat(task.await(Duration.ofSeconds(20))).isTrue();
    }
  }

  @Test
  void prefetch_ofFilesThatVanish_ends() throws Exception {
    try (Dataset dataset = dataset(1L << 30)) {
      for (int i = 0; i < 3; i++) {
        dataset.inode(name(i));
      }
      dataset.faulty.on(OPEN, STATUS).fail(Errno.ENOENT);
      FileTask task = start(dataset, List.of(0, 1, 2));

      assertThat(task.await(Duration.ofSeconds(60))).isTrue();
      assertThat(task.progress().failed()).isEqualTo(3);
    }
  }

  /** Starts a task with a clock that the test advances. */
  private FileTask startWithClock(Dataset dataset, List<Integer> order, AtomicLong now) {
    TaskRequest.Prefetch request =
        new TaskRequest.Prefetch(
            TaskPaths.of(order.stream().map(i -> FileName.of(name(i))).toList()),
            LIMITS,
            WINDOW,
            0);
    RunningTask task = new RunningTask(request, new ScratchFiles(List.of(directory)), () -> {});
    Staging staging =
        dataset.stager.staging(Placement.ANYWHERE, Pace.UNLIMITED, task.counts.bytes::add);
    task.start(
        t -> {
          try (TaskSource by =
              new TaskSource(
                  dataset.fs,
                  dataset.namespace,
                  dataset.source,
                  3,
                  Pace.UNLIMITED,
                  t::isCancelled)) {
            new PrefetchWork(by, dataset.fs, staging, request, now::get).run(t);
          }
        });
    return task;
  }

  @Test
  void prefetch_readerThatStopsForGood_endsAndSaysWhere() throws Exception {
    AtomicLong now = new AtomicLong();
    try (Dataset dataset = dataset(1L << 30)) {
      FileTask task = startWithClock(dataset, shuffled(1, 8), now);
      Await.until("the window is full", () -> task.progress().done() == 20);
      now.set(PrefetchWork.STOPPED.toNanos() + 1);

      assertThat(task.await(Duration.ofSeconds(60))).isTrue();
      assertThat(task.progress().state()).isEqualTo(State.ENDED);
      assertThat(task.progress().isComplete()).isFalse();
      assertThat(task.findings(0, 9))
          .singleElement()
          .satisfies(f -> assertThat(f.reason()).contains("the reader stopped before this file"));
    }
  }

  @Test
  void prefetch_lastFilesThatTheKernelAnswers_endsInTime() throws Exception {
    AtomicLong now = new AtomicLong();
    try (Dataset dataset = dataset(1L << 30)) {
      FileTask task = startWithClock(dataset, List.of(0, 1, 2), now);
      Await.until("all are there", () -> task.progress().done() == 3);
      now.set(PrefetchWork.STOPPED_AT_THE_END.toNanos() + 1);

      assertThat(task.await(Duration.ofSeconds(60))).isTrue();
      assertThat(task.progress().isComplete()).isTrue();
    }
  }
}
