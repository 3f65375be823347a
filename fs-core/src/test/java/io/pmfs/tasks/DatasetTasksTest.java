package io.pmfs.tasks;

import static io.pmfs.source.FaultyStore.Operation.LIST;
import static io.pmfs.source.FaultyStore.Operation.OPEN;
import static io.pmfs.source.FaultyStore.Operation.READ;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.posix.NoThreads;
import io.pmfs.source.FakeStore;
import io.pmfs.source.FaultyStore.Answer;
import io.pmfs.source.FaultyStore.Operation;
import io.pmfs.stage.copies.LeastRecentlyUsed;
import io.pmfs.tasks.TaskFinding.Kind;
import io.pmfs.tasks.TaskProgress.State;
import io.pmfs.tier.FaultyTier.Fault;
import io.pmfs.tier.FaultyTier.Point;
import io.pmfs.tier.Hold;
import java.io.OutputStream;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(120)
final class DatasetTasksTest {
  private static final int BLOCK = 1 << 20;
  private static final long ROOM = 256L << 20;

  @TempDir private Path directory;
  private final List<Dataset> mounted = new ArrayList<>();

  /** Mounts a source, with room for all of it where no capacities of tiers are given. */
  private Dataset mount(Dataset.Tree tree, long... capacities) throws Exception {
    long[] tiers = capacities.length == 0 ? new long[] {ROOM} : capacities;
    Dataset dataset = new Dataset(directory, tree, tiers);
    mounted.add(dataset);
    return dataset;
  }

  @AfterEach
  void unmount() throws Exception {
    for (Dataset dataset : mounted) {
      dataset.close();
    }
  }

  private static Dataset.Tree files(int count, long size) {
    return store -> {
      for (int i = 0; i < count; i++) {
        store.file("f" + i, i, size);
      }
    };
  }

  private static List<FileName> paths(String... paths) {
    return Arrays.stream(paths).map(FileName::of).toList();
  }

  private static TaskRequest.Stage stage(String... paths) {
    return StageRequest.of(paths).request();
  }

  private static TaskRequest.Check check(String... paths) {
    return new TaskRequest.Check(TaskPaths.of(paths(paths)), false, false);
  }

  private static TaskRequest.Evict evict(String... paths) {
    return new TaskRequest.Evict(TaskPaths.of(paths(paths)));
  }

  private static FileTask ended(FileTasks tasks, TaskRequest request) throws Exception {
    FileTask task = tasks.start(request);
    assertThat(task.await(Duration.ofSeconds(60))).isTrue();
    return task;
  }

  private static List<String> findings(FileTask task) {
    return task.findings(0, 1000).stream()
        .map(finding -> finding.kind() + " " + finding.path())
        .sorted()
        .toList();
  }

  private static void await(CountDownLatch latch) {
    try {
      if (!latch.await(30, TimeUnit.SECONDS)) {
        throw new AssertionError("nobody opened the latch");
      }
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** Files of about a block's size in three directories, an empty file and a link. */
  private static void tree(FakeStore store) {
    store.directory("a");
    store.directory("a/b");
    store.directory("c");
    store.file("empty", 1, 0);
    store.file("a/one", 2, 1);
    store.file("a/b/less", 3, BLOCK - 1);
    store.file("a/b/just", 4, BLOCK);
    store.file("c/more", 5, BLOCK + 1);
    store.file("c/large", 6, 5L * BLOCK + 7);
    store.symbolicLink("c/link", "more");
  }

  private static final long TREE_BYTES = 1 + 3L * BLOCK + 5L * BLOCK + 7;

  @Test
  void stage_ofAll_copiesEachByteOnceAndAsksNothingAfterwards() throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree);
    FileTask task = ended(dataset.tasks, stage(""));

    TaskProgress progress = task.progress();
    assertThat(progress.state()).isEqualTo(State.ENDED);
    assertThat(progress.isComplete()).isTrue();
    assertThat(progress.totalsAreFinal()).isTrue();
    assertThat(progress.done()).isEqualTo(5);
    assertThat(progress.present()).isEqualTo(1);
    assertThat(progress.files()).isEqualTo(6).isEqualTo(progress.totalFiles());
    assertThat(progress.bytes()).isEqualTo(TREE_BYTES).isEqualTo(progress.totalBytes());
    assertThat(dataset.asked().bytes()).isEqualTo(TREE_BYTES);
    dataset.readAll();
    assertThat(dataset.asked().total()).isZero();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5, 6})
  void tasks_thatGetFewThreads_doTheSame(int threads) throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree);
    for (TaskRequest request : List.of(stage("", "a"), check("c", ""), evict("a/b", "c"))) {
      try (NoThreads none = NoThreads.after(threads, "")) {
        FileTask task = ended(dataset.tasks, request);
        assertThat(none.refused()).isPositive();
        assertThat(findings(task)).isEmpty();
        assertThat(task.progress().state()).isEqualTo(State.ENDED);
        assertThat(task.progress().files()).isPositive();
        assertThat(task.progress().files()).isEqualTo(task.progress().totalFiles());
      }
    }
    dataset.readAll();
  }

  @ParameterizedTest
  @ValueSource(strings = {"find-", "count-", "walk-", "file-"})
  void stage_withOneThreadOfAKind_orWithoutIt_copiesAll(String kind) throws Exception {
    for (int threads : new int[] {0, 1}) {
      Path own = directory.resolve(kind + threads);
      try (Dataset dataset = new Dataset(Files.createDirectory(own), DatasetTasksTest::tree, ROOM);
          NoThreads none = NoThreads.after(threads, kind)) {
        FileTask task = ended(dataset.tasks, stage(""));
        assertThat(task.progress().isComplete()).isTrue();
        assertThat(task.progress().done()).isEqualTo(5);
        boolean isGroup = kind.equals("count-") || kind.equals("file-");
        assertThat(none.refused() > 0).isEqualTo(threads == 0 || isGroup);
      }
    }
  }

  /** {@code ls -l}, {@code cp -a} and {@code rsync -X} request them. */
  @Test
  void stage_ofAll_bringsExtendedAttributesAndAccessLists() throws Exception {
    FileName name = FileName.of("user.label");
    Dataset dataset =
        mount(
            store -> {
              tree(store);
              store.directory("a/none");
              store.xattr("a", "user.label", new byte[] {1});
              store.xattr("c/more", "user.label", new byte[] {2});
            },
            ROOM);
    assertThat(ended(dataset.tasks, stage("")).progress().isComplete()).isTrue();
    dataset.asked();
    for (String path :
        List.of("", "a", "a/b", "a/none", "a/one", "a/b/less", "c", "c/more", "c/link", "empty")) {
      long number = path.isEmpty() ? PmfsFileSystem.ROOT : dataset.number(path);
      Map<FileName, byte[]> attributes = dataset.fs.extendedAttributes(number);
      assertThat(attributes.containsKey(name)).isEqualTo(List.of("a", "c/more").contains(path));
      assertThat(dataset.fs.accessLists().of(number).size()).isZero();
    }
    assertThat(dataset.asked().total()).isZero();
  }

  /** As with some FUSE daemons (rclone): the error is returned to programs that request them. */
  @Test
  void stage_ofASourceThatCannotSayExtendedAttributes_isComplete() throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree);
    dataset.faulty.on(Operation.XATTRS).fail(Errno.EIO);
    assertThat(ended(dataset.tasks, stage("")).progress().isComplete()).isTrue();
    long number = dataset.number("a/one");
    assertThatThrownBy(() -> dataset.fs.extendedAttributes(number))
        .isInstanceOf(FsException.class)
        .hasMessageContaining("EIO");
  }

  @Test
  void stage_again_findsAllThere() throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree);
    ended(dataset.tasks, stage(""));
    dataset.asked();
    TaskProgress again = ended(dataset.tasks, stage("")).progress();

    assertThat(again.done()).isZero();
    assertThat(again.present()).isEqualTo(6);
    assertThat(dataset.asked().total()).isZero();
  }

  @Test
  void stage_ofPathsTwiceMissingBelowAFileAndOverlapping_takesEachFileOnce() throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree);
    FileTask task =
        ended(
            dataset.tasks,
            stage("a", "a/b", "a/b/less", "a", "gone", "a/one/x", "a//one", "c/link"));

    assertThat(task.progress().done()).isEqualTo(3);
    assertThat(task.progress().totalFiles()).isEqualTo(3);
    assertThat(task.progress().isComplete()).isFalse();
    assertThat(findings(task)).containsExactly("NOT_FOUND a/one/x", "NOT_FOUND gone");
    assertThat(dataset.asked().bytes()).isEqualTo(2L * BLOCK);
  }

  @Test
  void stage_ofAList_namesTheLinesThatAreNotThereAndKeepsNoPaths() throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree);
    Path file = directory.resolve("list");
    try (OutputStream out = Files.newOutputStream(file)) {
      PathFile.Writer list = new PathFile.Writer(out);
      for (String path : new String[] {"a", "", "a/b/less", "gone", "a", "a/one/x"}) {
        list.add(path.isEmpty() ? null : FileName.of(path));
      }
      list.end();
    }
    TaskPaths list = PathFile.open(FileChannel.open(file, StandardOpenOption.READ), file, 0);
    FileTask task = ended(dataset.tasks, StageRequest.of(list).request());

    assertThat(task.progress().done()).isEqualTo(3);
    assertThat(task.progress().totalFiles()).isEqualTo(3);
    assertThat(task.findings(0, 9).stream().map(TaskFinding::reason))
        .containsExactlyInAnyOrder(
            "line 4: there is no such path",
            "line 6: a path component is not a directory; symbolic links are not followed");
    // Only after the end: a running task must keep its list for a successor.
    Await.until("the list is forgotten", () -> task.request().paths().count() == 0);
  }

  @Test
  void stage_ofAListThatCannotBeReadAnyMore_fails() throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree);
    Path file = directory.resolve("list");
    try (OutputStream out = Files.newOutputStream(file)) {
      PathFile.Writer list = new PathFile.Writer(out);
      list.add(FileName.of("a"));
      list.end();
    }
    TaskPaths list = PathFile.open(FileChannel.open(file, StandardOpenOption.READ), file, 0);
    list.close();
    FileTask task = dataset.tasks.start(StageRequest.of(list).request());
    assertThat(task.await(Duration.ofSeconds(20))).isTrue();

    assertThat(task.progress().state()).isEqualTo(State.FAILED);
    assertThat(task.progress().reason()).contains("the list of paths cannot be read");
  }

  @Test
  void stage_ofMetadataOnly_importsAllNamesAndCopiesNothing() throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree);
    TaskRequest request = StageRequest.of("").metadataOnly().request();
    TaskProgress progress = ended(dataset.tasks, request).progress();

    assertThat(progress.done()).isEqualTo(6);
    assertThat(dataset.copyCount()).isZero();
    assertThat(dataset.asked().reads()).isZero();
    for (FileName path : dataset.store.paths()) {
      dataset.number(path);
    }
    assertThat(dataset.fs.readSymbolicLink(dataset.number("c/link"))).hasToString("more");
    assertThat(dataset.asked().total()).isZero();
  }

  @Test
  void stage_toOneTier_usesThatOneAndMovesWhatIsElsewhere() throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree, ROOM, ROOM);
    ended(dataset.tasks, stage("a/one"));
    assertThat(dataset.tiers.get(0).status().copies()).isEqualTo(1);
    TaskRequest request = StageRequest.of("a").tier("ssd:1").request();
    TaskProgress progress = ended(dataset.tasks, request).progress();

    assertThat(progress.done()).isEqualTo(3);
    assertThat(dataset.tiers.get(0).status().copies()).isZero();
    assertThat(dataset.tiers.get(1).status().copies()).isEqualTo(3);
    dataset.asked();
    assertThat(dataset.read("a/one")).isEqualTo(FakeStore.content(2, 0, 1));
    assertThat(dataset.asked().total()).isZero();
  }

  @Test
  void start_withATierThatIsNotThere_isRefused() throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree);
    TaskRequest request = StageRequest.of("a").tier("pm:0").request();

    assertThatThrownBy(() -> dataset.tasks.start(request))
        .isInstanceOf(IllegalArgumentException.class)
        .hasMessageContaining("pm:0")
        .hasMessageContaining("ssd:0");
    assertThat(dataset.tasks.latest()).isNull();
  }

  @Test
  void stage_inOrder_fillsTheFirstTierFirst() throws Exception {
    Dataset dataset = mount(files(8, BLOCK), 3L * BLOCK, 3L * BLOCK);
    TaskRequest request =
        StageRequest.of("f7", "f6", "f5", "f4", "f3", "f2", "f1", "f0").limits(1, 0, 0).request();
    FileTask task = ended(dataset.tasks, request);

    assertThat(task.progress().done()).isEqualTo(6);
    assertThat(task.progress().noRoom()).isEqualTo(2);
    assertThat(task.progress().isComplete()).isFalse();
    assertThat(findings(task)).containsExactly("NO_ROOM f0", "NO_ROOM f1");
    assertThat(tier(dataset, "f7")).isEqualTo("ssd:0");
    assertThat(tier(dataset, "f4")).isEqualTo("ssd:1");
  }

  private static String tier(Dataset dataset, String path) throws Exception {
    return dataset.namespace.copies(dataset.number(path)).get(0).tier();
  }

  @Test
  void stage_ofAFileThatDoesNotFit_goesOnWithSmallerOnes() throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree, 3L * BLOCK);
    FileTask task = ended(dataset.tasks, stage("c/large", "a", "empty"));

    assertThat(findings(task)).containsExactly("NO_ROOM c/large");
    assertThat(task.progress().done()).isEqualTo(3);
  }

  @Test
  void stage_diskFullInTheMiddle_keepsWhatWasWholeAndSkipsTheRest() throws Exception {
    Dataset dataset = mount(files(10, 2L * BLOCK), ROOM);
    AtomicInteger writes = new AtomicInteger();
    dataset
        .tiers
        .get(0)
        .faults(
            (point, number) ->
                point == Point.WRITE && writes.incrementAndGet() > 9 ? Fault.FULL : Fault.NONE);
    FileTask task = ended(dataset.tasks, StageRequest.of("").limits(1, 0, 0).request());

    assertThat(task.progress().done()).isEqualTo(4);
    assertThat(task.progress().noRoom()).isEqualTo(6);
    dataset.tiers.get(0).clearFaults();
    dataset.asked();
    for (int i = 0; i < 4; i++) {
      assertThat(dataset.read("f" + i)).isEqualTo(FakeStore.content(i, 0, 2 * BLOCK));
    }
    assertThat(dataset.asked().total()).isZero();
  }

  @Test
  void stage_whileTheSourceIsBlocked_readersOfOtherFilesAreServed() throws Exception {
    Dataset dataset =
        mount(
            store -> {
              for (int i = 0; i < 20; i++) {
                store.file("f" + i, i, BLOCK);
              }
              store.file("wanted", 77, 3L * BLOCK);
            },
            ROOM);
    Hold jobs = dataset.faulty.on(READ).of(path -> path.toString().startsWith("f")).hold();
    FileTask task = dataset.tasks.start(stage(""));
    Await.until("all jobs wait for the source", () -> jobs.count() == 4);

    assertThat(dataset.read("wanted")).isEqualTo(FakeStore.content(77, 0, 3 * BLOCK));
    assertThat(task.progress().state()).isEqualTo(State.RUNNING);
    jobs.release();
    assertThat(task.await(Duration.ofSeconds(60))).isTrue();
    assertThat(task.progress().isComplete()).isTrue();
    assertThat(dataset.store.bytesRead("wanted")).isEqualTo(3L * BLOCK);
  }

  @Test
  void stage_whileTheSameFileIsRead_readsEachByteOnce() throws Exception {
    int size = 12 * BLOCK + 5;
    Dataset dataset = mount(store -> store.file("f", 1, size), ROOM);
    FileTask task = dataset.tasks.start(stage(""));
    long number = dataset.number("f");
    for (int offset = size - 100; offset > 0; offset -= BLOCK / 3) {
      assertThat(dataset.read(number, offset, 1000))
          .isEqualTo(dataset.store.expected(FileName.of("f"), offset, 1000));
    }
    assertThat(task.await(Duration.ofSeconds(60))).isTrue();

    assertThat(task.progress().isComplete()).isTrue();
    assertThat(dataset.store.bytesRead("f")).isEqualTo(size);
  }

  @Test
  void stage_ofOneLargeFile_isDoneBySeveralThreadsAndItsBytesMove() throws Exception {
    int blocks = 9;
    Dataset dataset = mount(store -> store.file("f", 1, (long) blocks * BLOCK), ROOM);
    CountDownLatch together = new CountDownLatch(4);
    dataset.faulty.faults(
        (operation, path, offset) -> {
          if (operation == Operation.READ) {
            together.countDown();
            await(together);
            if (offset == (blocks - 1L) * BLOCK) {
              try {
                Await.until(
                    "the other blocks are counted",
                    () ->
                        Objects.requireNonNull(dataset.tasks.latest()).progress().bytes()
                            == (blocks - 1L) * BLOCK);
              } catch (Exception e) {
                throw new FsException(Errno.EIO, "test", e);
              }
            }
          }
          return Answer.WHOLE;
        });
    FileTask task = ended(dataset.tasks, stage("f"));

    assertThat(task.progress().isComplete()).isTrue();
    assertThat(task.progress().bytes()).isEqualTo((long) blocks * BLOCK);
    assertThat(dataset.store.bytesRead("f")).isEqualTo((long) blocks * BLOCK);
  }

  /** Other threads may still be working on the old version of the file. */
  @RepeatedTest(20)
  void stage_fileThatChangesMeanwhile_isStagedInItsNewVersion() throws Exception {
    Dataset dataset = mount(store -> store.file("f", 1, 3L * BLOCK), ROOM);
    dataset.number("f");
    dataset.store.write("f", 2, 2L * BLOCK);
    FileTask task = ended(dataset.tasks, stage("f"));

    assertThat(task.progress().isComplete()).isTrue();
    assertThat(task.progress().done()).isEqualTo(1);
    assertThat(task.progress().bytes()).isEqualTo(2L * BLOCK);
    dataset.asked();
    assertThat(dataset.read("f")).isEqualTo(FakeStore.content(2, 0, 2 * BLOCK));
    assertThat(dataset.asked().reads()).isZero();
  }

  @Test
  void stage_fileThatVanishesOrFails_isTriedTwiceAndReported() throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree);
    ended(dataset.tasks, StageRequest.of("").metadataOnly().request());
    dataset.store.remove("a/one");
    List<String> reads = new CopyOnWriteArrayList<>();
    dataset.faulty.faults(
        (operation, path, offset) -> {
          if (operation == Operation.READ && path.equals(FileName.of("a/b/less"))) {
            reads.add(Thread.currentThread().getName() + " from " + offset);
            throw new FsException(Errno.EIO, "a/b/less");
          }
          return Answer.WHOLE;
        });
    FileTask task = ended(dataset.tasks, stage(""));

    assertThat(findings(task)).containsExactly("FAILED a/b/less", "FAILED a/one");
    assertThat(task.findings(0, 9)).allMatch(finding -> !finding.reason().isBlank());
    assertThat(reads).hasSize(2);
    assertThat(task.progress().done()).isEqualTo(3);
    assertThat(task.progress().failed()).isEqualTo(2);
    assertThat(task.progress().isComplete()).isFalse();
  }

  @Test
  void stage_directoryThatCannotBeListed_isReportedAndTheRestStaged() throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree);
    dataset.faulty.on(LIST).of("a/b").fail(Errno.EACCES);
    FileTask task = ended(dataset.tasks, stage(""));

    assertThat(findings(task)).containsExactly("FAILED a/b");
    assertThat(task.progress().done()).isEqualTo(3);
  }

  @Test
  void stage_fileBeyondDescription_isReportedAndTheRestStaged() throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree);
    dataset.faulty.on(Operation.STATUS).of("a/one").fail(Errno.EIO);
    FileTask task = ended(dataset.tasks, stage(""));
    assertThat(findings(task)).containsExactly("FAILED a/one");
    assertThat(task.findings(0, 9)).allMatch(finding -> finding.reason().contains("EIO"));
    assertThat(task.progress().done()).isEqualTo(4);
    assertThat(findings(ended(dataset.tasks, stage("a/one")))).containsExactly("FAILED a/one");

    dataset.faulty.clearFaults();
    task = ended(dataset.tasks, stage(""));
    assertThat(findings(task)).isEmpty();
    assertThat(task.progress().done()).isEqualTo(1);
    assertThat(dataset.copyCount()).isEqualTo(5);
  }

  @Test
  void stage_sourceHangs_cancelEndsItSoonAndTheNextTaskMayStart() throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree);
    Hold reads = dataset.faulty.on(READ).hold();
    FileTask task = dataset.tasks.start(stage(""));
    reads.awaitReached();
    assertThatThrownBy(() -> dataset.tasks.start(stage("")))
        .isInstanceOf(IllegalStateException.class)
        .hasMessageContaining("another task");
    task.cancel();
    assertThat(task.await(Duration.ofSeconds(20))).isTrue();
    assertThat(task.progress().state()).isEqualTo(State.CANCELLED);
    assertThat(task.progress().isComplete()).isFalse();

    dataset.faulty.clearFaults();
    assertThat(ended(dataset.tasks, stage("")).progress().isComplete()).isTrue();
  }

  @Test
  void stage_cancelledAndRepeatedInTheNextSession_copiesNoFileTwice() throws Exception {
    int count = 60;
    Dataset dataset =
        mount(
            store -> {
              for (int i = 0; i < count; i++) {
                store.file("f" + i, i, 1000 + i);
              }
            },
            ROOM);
    AtomicInteger reads = new AtomicInteger();
    CountDownLatch half = new CountDownLatch(1);
    CountDownLatch stopped = new CountDownLatch(1);
    dataset.faulty.faults(
        (operation, path, offset) -> {
          if (operation == Operation.READ && reads.incrementAndGet() > count / 2) {
            half.countDown();
            await(stopped);
            throw new FsException(Errno.EIO, "stopped");
          }
          return Answer.WHOLE;
        });
    FileTask task = dataset.tasks.start(stage(""));
    await(half);
    Await.until("the whole ones are counted", () -> task.progress().done() == count / 2);
    task.cancel();
    stopped.countDown();
    assertThat(task.await(Duration.ofSeconds(20))).isTrue();
    dataset.faulty.clearFaults();
    dataset.remount(store -> {});
    TaskProgress second = ended(dataset.tasks, stage("")).progress();

    assertThat(second.isComplete()).isTrue();
    assertThat(second.present()).isEqualTo(count / 2);
    for (int i = 0; i < count; i++) {
      assertThat(dataset.store.bytesRead("f" + i)).isEqualTo(1000 + i);
    }
  }

  @Test
  void stage_pinned_isNeverEvictedToMakeRoom() throws Exception {
    Dataset dataset = mount(files(10, BLOCK), 4L * BLOCK);
    dataset.remount(store -> {}, new LeastRecentlyUsed(new Random(1)));
    ended(dataset.tasks, stage("f0"));
    TaskRequest pin = StageRequest.of("f0", "f1").pinned().request();
    assertThat(ended(dataset.tasks, pin).progress().isComplete()).isTrue();
    for (int round = 0; round < 3; round++) {
      for (int i = 2; i < 10; i++) {
        dataset.read("f" + i);
        dataset.awaitIdle();
      }
    }

    assertThat(dataset.stager.status().evicted()).isPositive();
    assertThat(dataset.namespace.copies(dataset.number("f0"))).hasSize(1);
    assertThat(dataset.namespace.copies(dataset.number("f1"))).hasSize(1);
  }

  @Test
  void stage_ofMoreThanFits_evictsNothing() throws Exception {
    Dataset dataset = mount(files(10, BLOCK), 4L * BLOCK);
    dataset.remount(store -> {}, new LeastRecentlyUsed(new Random(1)));
    TaskProgress progress = ended(dataset.tasks, stage("")).progress();

    assertThat(progress.done()).isEqualTo(4);
    assertThat(progress.noRoom()).isEqualTo(6);
    assertThat(dataset.stager.status().evicted()).isZero();
  }

  @Test
  void check_ofStagedChangedAndNewFiles_tellsWhichAreMissingAndStale() throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree);
    ended(dataset.tasks, stage("a", "empty"));
    assertThat(ended(dataset.tasks, check("a")).progress().isComplete()).isTrue();
    dataset.remount(store -> store.write("a/one", 9, 1));
    FileTask task = ended(dataset.tasks, check(""));

    assertThat(findings(task)).containsExactly("MISSING c/large", "MISSING c/more", "STALE a/one");
    assertThat(task.progress().present()).isEqualTo(3);
    assertThat(task.progress().isComplete()).isFalse();
    assertThat(dataset.asked().reads()).isZero();
  }

  @Test
  void evict_ofADirectory_dropsItsCopiesAndAsksNothing() throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree);
    ended(dataset.tasks, StageRequest.of("").pinned().request());
    dataset.asked();
    List<Long> gone = new ArrayList<>();
    dataset.fs.onCopyGone(gone::add);
    FileTask task = ended(dataset.tasks, evict("a", "unknown"));

    assertThat(dataset.asked().total()).isZero();
    assertThat(task.progress().done()).isEqualTo(3);
    assertThat(findings(task)).containsExactly("NOT_FOUND unknown");
    assertThat(gone).hasSize(3);
    assertThat(dataset.copyCount()).isEqualTo(2);
    assertThat(dataset.read("a/b/just")).isEqualTo(FakeStore.content(4, 0, BLOCK));
    assertThat(dataset.asked().reads()).isEqualTo(1);
  }

  @ParameterizedTest
  @EnumSource(names = {"WRITE", "COMMIT"})
  void evict_ofAFileThatIsBeingCopied_leavesNoCopyWhenItEnds(Point copying) throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree);
    CountDownLatch goOn = new CountDownLatch(1);
    CountDownLatch came = new CountDownLatch(1);
    dataset
        .tiers
        .get(0)
        .faults(
            (point, number) -> {
              if (point == copying) {
                came.countDown();
                await(goOn);
              }
              return Fault.NONE;
            });
    dataset.read("a/b/less");
    await(came);
    FileTask task = dataset.tasks.start(evict(""));
    if (copying == Point.WRITE) {
      assertThat(task.await(Duration.ofSeconds(60))).isTrue();
    }
    goOn.countDown();
    assertThat(task.await(Duration.ofSeconds(60))).isTrue();
    dataset.awaitIdle();

    assertThat(dataset.copyCount()).isZero();
    assertThat(dataset.copies.has(dataset.inode("a/b/less"))).isFalse();
  }

  @Test
  void evict_ofWhatWasNeverLookedAt_importsNothing() throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree);
    TaskProgress progress = ended(dataset.tasks, evict("", "a/b")).progress();

    assertThat(progress.isComplete()).isTrue();
    assertThat(progress.files()).isZero();
    assertThat(dataset.asked().lists()).isZero();
  }

  @Test
  void findings_areHandedOutInParts() throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree);
    FileTask task = ended(dataset.tasks, check(""));
    List<TaskFinding> all = task.findings(0, 100);

    assertThat(all).hasSize(5).allMatch(finding -> finding.kind() == Kind.MISSING);
    assertThat(task.findings(1, 2)).isEqualTo(all.subList(1, 3));
    assertThat(task.findings(4, 100)).isEqualTo(all.subList(4, 5));
    assertThat(task.findings(99, 1)).isEmpty();
  }

  @Test
  void close_whileATaskRuns_cancelsItAndRefusesOthers() throws Exception {
    Dataset dataset = mount(DatasetTasksTest::tree);
    Hold opens = dataset.faulty.on(OPEN).hold();
    FileTask task = dataset.tasks.start(stage(""));
    opens.awaitReached();
    Thread close = new Thread(dataset.tasks::close);
    close.start();
    Await.until("it is refused", () -> isRefused(dataset.tasks));
    opens.release();
    close.join();

    assertThat(task.progress().state()).isEqualTo(State.CANCELLED);
  }

  @Test
  void stage_atAPace_spacesItsRequestsAndLetsReadersPass() throws Exception {
    Dataset dataset =
        mount(
            store -> {
              store.directory("d");
              for (int i = 0; i < 50; i++) {
                store.file("d/f" + i, i, 100);
              }
            },
            ROOM);
    // 100 seconds for each file.
    TaskRequest request = StageRequest.of("").limits(2, 1, 0).request();
    FileTask slow = dataset.tasks.start(request);
    Await.until("one file is staged", () -> slow.progress().done() >= 1);
    for (int i = 0; i < 50; i++) {
      assertThat(dataset.read("d/f" + i)).isEqualTo(FakeStore.content(i, 0, 100));
    }
    assertThat(slow.progress().state()).isEqualTo(State.RUNNING);
    slow.cancel();
    assertThat(slow.await(Duration.ofSeconds(20))).isTrue();
    assertThat(slow.progress().elapsed()).isLessThan(Duration.ofSeconds(60));
  }

  @Test
  void stage_importingAtAPace_lookupsDoNotWaitForIt() throws Exception {
    Dataset dataset =
        mount(
            store -> {
              store.directory("d");
              for (int i = 0; i < 200; i++) {
                store.file("d/f" + i, i, 100);
              }
            },
            ROOM);
    CountDownLatch started = new CountDownLatch(1);
    dataset.faulty.on(LIST).of("d").run(path -> started.countDown());
    // At the task's pace the 200 names would take longer than this test may; once a reader waits
    // for them the task hurries, and may have ended by now.
    TaskRequest request = StageRequest.of("d").limits(2, 0, 1).metadataOnly().request();
    FileTask slow = dataset.tasks.start(request);
    await(started);

    assertThat(dataset.inode("d/f199").attributes().size()).isEqualTo(100);
    slow.cancel();
  }

  private static boolean isRefused(FileTasks tasks) {
    try {
      tasks.start(check(""));
      return false;
    } catch (IllegalStateException e) {
      return String.valueOf(e.getMessage()).contains("unmounted");
    }
  }
}
