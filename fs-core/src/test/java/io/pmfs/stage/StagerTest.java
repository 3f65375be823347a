package io.pmfs.stage;

import static io.pmfs.source.FaultyStore.Operation.READ;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.memory.CollectingSink;
import io.pmfs.metadata.Inode;
import io.pmfs.metadata.Namespace;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.FakeStore;
import io.pmfs.source.FaultyStore;
import io.pmfs.source.FaultyStore.Operation;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.copies.EvictionPolicy;
import io.pmfs.stage.copies.LeastRecentlyUsed;
import io.pmfs.stage.copies.Share;
import io.pmfs.stage.copies.TestCopies;
import io.pmfs.stage.formats.Blocks;
import io.pmfs.table.StateException;
import io.pmfs.tier.DirectoryTier;
import io.pmfs.tier.FaultyTier;
import io.pmfs.tier.FaultyTier.Fault;
import io.pmfs.tier.FaultyTier.Point;
import io.pmfs.tier.Hold;
import io.pmfs.tier.Tier;
import io.pmfs.tier.TierSettings;
import io.pmfs.tier.TierStatus;
import java.io.IOException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(60)
final class StagerTest {
  private static final int BLOCK = Blocks.SIZE;
  private static final long ROOM = 256L << 20;

  @TempDir private Path directory;
  private final ExecutorService readers = Executors.newFixedThreadPool(8);
  private final List<Future<?>> running = new ArrayList<>();

  @AfterEach
  void stopReaders() {
    readers.shutdownNow();
  }

  private interface Task {
    void run() throws Exception;
  }

  private void start(Task task) {
    running.add(
        readers.submit(
            () -> {
              task.run();
              return true;
            }));
  }

  private void join() throws Exception {
    for (Future<?> task : running) {
      task.get();
    }
    running.clear();
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

  private static Errno errnoOf(Task task) {
    try {
      task.run();
    } catch (FsException e) {
      return e.errno();
    } catch (Exception e) {
      throw new AssertionError(e);
    }
    throw new AssertionError("it did not fail");
  }

  @ParameterizedTest
  @ValueSource(ints = {1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7})
  void read_eightReadersOfOneFile_readsEachByteOfTheSourceOnce(int size) throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, size);
      byte[] expected = Stage.expected(1, inode);
      CyclicBarrier together = new CyclicBarrier(8);
      for (int reader = 0; reader < 8; reader++) {
        Random random = new Random(reader);
        start(
            () -> {
              together.await();
              for (int i = 0; i < 20; i++) {
                int offset = random.nextInt(size);
                int count = 1 + random.nextInt(Math.min(size - offset, 200_000));
                assertThat(stage.read(inode, offset, count))
                    .isEqualTo(FakeStore.content(1, offset, count));
              }
              assertThat(stage.read(inode)).isEqualTo(expected);
            });
      }
      join();
      stage.awaitIdle();

      assertThat(stage.store.bytesRead("f")).isEqualTo(size);
      assertThat(stage.stager.status().completed()).isEqualTo(1);
      // Readers that arrive together may each open it.
      assertThat(stage.source.operations().opens()).isBetween(1L, 12L);
      assertThat(stage.read(inode)).isEqualTo(expected);
      assertThat(stage.store.bytesRead("f")).isEqualTo(size);
    }
  }

  @Test
  void read_eightReadersRoomForJustThatFile_neitherSkipsNorReadsTwice() throws Exception {
    for (int round = 0; round < 20; round++) {
      try (Stage stage = new Stage(directory.resolve("r" + round), 2L * BLOCK)) {
        Inode inode = stage.file("f", 1, 2L * BLOCK);
        CyclicBarrier together = new CyclicBarrier(8);
        for (int reader = 0; reader < 8; reader++) {
          start(
              () -> {
                together.await();
                assertThat(stage.read(inode, 10, 1000)).isEqualTo(FakeStore.content(1, 10, 1000));
              });
        }
        join();
        stage.awaitIdle();

        assertThat(stage.stager.status().skippedNoRoom()).isZero();
        assertThat(stage.store.bytesRead("f")).isEqualTo(2L * BLOCK);
        assertThat(stage.stager.status().completed()).isEqualTo(1);
      }
    }
  }

  @Test
  void read_manySmallFilesByEightReaders_readsEachOnce() throws Exception {
    int count = 300;
    try (Stage stage = new Stage(directory, ROOM)) {
      for (int i = 0; i < count; i++) {
        stage.store.file("f" + i, i, 1 + i * 37L);
      }
      stage.importAll();
      for (int reader = 0; reader < 8; reader++) {
        Random random = new Random(reader);
        start(
            () -> {
              List<Integer> order = new ArrayList<>();
              for (int i = 0; i < count; i++) {
                order.add(i);
              }
              Collections.shuffle(order, random);
              for (int i : order) {
                Inode inode = stage.inode("f" + i);
                assertThat(stage.read(inode)).isEqualTo(Stage.expected(i, inode));
              }
            });
      }
      join();
      stage.awaitIdle();

      for (int i = 0; i < count; i++) {
        assertThat(stage.store.bytesRead("f" + i)).isEqualTo(1 + i * 37L);
      }
      assertThat(stage.stager.status().completed()).isEqualTo(count);
      assertThat(stage.tiers.get(0).status().copies()).isEqualTo(count);
      assertThat(stage.source.operations().opens()).isEqualTo(count);
      Await.until("the source's files are closed", () -> stage.store.openFiles() == 0);
    }
  }

  @Test
  void readOrigins_readAndReadAgain_sayWhereEachCameFrom() throws Exception {
    try (Stage stage = new Stage(directory, ROOM, ROOM)) {
      Inode inode = stage.file("f", 1, 5000);
      stage.read(inode);
      stage.awaitIdle();
      stage.read(inode, 100, 50);
      stage.read(inode, 100, 50);

      ReadOrigins origins = stage.stager.readOrigins();
      assertThat(origins.tiers())
          .containsExactly(new ReadOrigins.Origin(2, 100), new ReadOrigins.Origin(0, 0));
      assertThat(origins.source()).isEqualTo(new ReadOrigins.Origin(1, 5000));
      assertThat(origins.misses(0)).as("what the source answered").isEqualTo(1);
      assertThat(origins.misses(1)).isEqualTo(1);
    }
  }

  @Test
  void read_tierDoesNotWriteYet_isAnswered() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      CountDownLatch written = new CountDownLatch(1);
      stage.tiers.get(0).faults(writesAfter(written));
      Inode inode = stage.file("f", 1, 5000);

      assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
      assertThat(stage.read(inode, 100, 50)).isEqualTo(FakeStore.content(1, 100, 50));
      assertThat(stage.stager.status().active()).isEqualTo(1);
      assertThat(stage.stager.readOrigins().source().bytes()).isEqualTo(5000);
      assertThat(stage.stager.readOrigins().fetched().bytes()).isEqualTo(50);
      assertThat(stage.stager.readOrigins().bytesFromTiers()).isZero();
      written.countDown();
      stage.awaitIdle();
      assertThat(stage.stager.status().completed()).isEqualTo(1);
      assertThat(stage.store.bytesRead("f")).isEqualTo(5000);
    }
  }

  /** Readers that are faster than the tier do not cause another read of a shared source. */
  @Test
  void read_ofASharedSourceThatOutrunsTheTier_readsTheSourceOnce() throws Exception {
    Share shared = inode -> true;
    try (Stage stage =
        new Stage(directory, ROOM).with(new StagerSettings(2, 8 * BLOCK, 100)).with(shared)) {
      stage.tiers.get(0).faults(StagerTest::slowWrites);
      Inode file = stage.file("f", 7, 64L * BLOCK);
      byte[] expected = Stage.expected(7, file);
      List<CompletableFuture<Void>> reads = new ArrayList<>();
      for (int reader = 0; reader < 8; reader++) {
        int offset = reader * 8 * BLOCK;
        reads.add(
            CompletableFuture.runAsync(
                () -> {
                  try {
                    assertThat(stage.read(file, offset, 8 * BLOCK))
                        .isEqualTo(Arrays.copyOfRange(expected, offset, offset + 8 * BLOCK));
                  } catch (FsException e) {
                    throw new IllegalStateException(e);
                  }
                },
                command -> new Thread(command).start()));
      }
      for (CompletableFuture<Void> read : reads) {
        read.get();
      }
      stage.awaitIdle();
      assertThat(stage.store.bytesRead("f")).isEqualTo(64L * BLOCK);
    }
  }

  /** A reader waits for memory for as long as the source would take to read its block again. */
  @Test
  void read_ofASlowSourceWhileTheTierIsLate_readsTheSourceOnce() throws Exception {
    try (Stage stage = new Stage(directory, ROOM).with(new StagerSettings(2, 8 * BLOCK, 100))) {
      CountDownLatch written = new CountDownLatch(1);
      stage.tiers.get(0).faults(writesAfter(written));
      List<Inode> files = new ArrayList<>();
      for (int file = 0; file < 9; file++) {
        files.add(stage.file("f" + file, file, BLOCK));
      }
      for (Inode file : files.subList(0, 7)) {
        stage.read(file);
      }
      stage.faulty.faults(
          (operation, path, offset) -> {
            if (operation == READ) {
              LockSupport.parkNanos(1_000_000_000);
            }
            return FaultyStore.Answer.WHOLE;
          });
      stage.read(files.get(7));
      stage.faulty.clearFaults();
      CompletableFuture<byte[]> last = new CompletableFuture<>();
      Thread reader = new Thread(() -> last.complete(readQuietly(stage, files.get(8))));
      reader.start();
      Await.until("the reader waits", () -> reader.getState() == Thread.State.TIMED_WAITING);
      written.countDown();
      assertThat(last.get()).isEqualTo(Stage.expected(8, files.get(8)));
      stage.awaitIdle();
      assertThat(stage.store.bytesRead("f8")).isEqualTo(BLOCK);
    }
  }

  private static byte[] readQuietly(Stage stage, Inode file) {
    try {
      return stage.read(file);
    } catch (FsException e) {
      throw new IllegalStateException(e);
    }
  }

  private static FaultyTier.Faults writesAfter(CountDownLatch latch) {
    return (point, number) -> {
      if (point == Point.WRITE) {
        await(latch);
      }
      return Fault.NONE;
    };
  }

  private static Fault slowWrites(Point point, long number) {
    if (point == Point.WRITE) {
      LockSupport.parkNanos(60_000_000);
    }
    return Fault.NONE;
  }

  @Test
  void read_sharedSourceAndATierThatHangs_isAnswered() throws Exception {
    Share shared = inode -> true;
    try (Stage stage =
        new Stage(directory, ROOM).with(new StagerSettings(2, 8 * BLOCK, 100)).with(shared)) {
      CountDownLatch written = new CountDownLatch(1);
      stage.tiers.get(0).faults(writesAfter(written));
      Inode file = stage.file("f", 7, 64L * BLOCK);
      assertThat(stage.read(file)).isEqualTo(Stage.expected(7, file));
      written.countDown();
      stage.awaitIdle();
    }
  }

  @Test
  void read_buffersUsedUp_isAnsweredAndStagedLater() throws Exception {
    try (Stage stage = new Stage(directory, ROOM).with(new StagerSettings(2, 8 * BLOCK, 100))) {
      CountDownLatch written = new CountDownLatch(1);
      stage.tiers.get(0).faults(writesAfter(written));
      for (int i = 0; i < 10; i++) {
        stage.store.file("f" + i, i, BLOCK);
      }
      stage.importAll();
      for (int i = 0; i < 10; i++) {
        assertThat(stage.read(stage.inode("f" + i)))
            .isEqualTo(Stage.expected(i, stage.inode("f" + i)));
      }
      assertThat(stage.stager.status().completed()).isZero();
      written.countDown();
      stage.awaitIdle();

      assertThat(stage.stager.status().completed()).isEqualTo(10);
      for (int i = 0; i < 10; i++) {
        assertThat(stage.store.bytesRead("f" + i)).isEqualTo(i < 8 ? BLOCK : 2L * BLOCK);
      }
    }
  }

  @Test
  void read_queueFull_dropsIsRightAndStagesWhenReadAgain() throws Exception {
    try (Stage stage = new Stage(directory, ROOM).with(new StagerSettings(1, 64 << 20, 1))) {
      for (int i = 0; i < 3; i++) {
        stage.store.file("f" + i, i, 2L * BLOCK);
      }
      stage.importAll();
      Hold fetches = stage.faulty.on(READ).by("fetch").hold();
      assertThat(stage.read(stage.inode("f0"), 0, 100)).isEqualTo(FakeStore.content(0, 0, 100));
      Await.until("the fetch thread is busy", () -> stage.stager.status().queued() == 0);
      assertThat(stage.read(stage.inode("f1"), 0, 100)).isEqualTo(FakeStore.content(1, 0, 100));
      assertThat(stage.stager.status().queued()).isEqualTo(1);
      assertThat(stage.stager.status().dropped()).isZero();

      assertThat(stage.read(stage.inode("f2"), 0, 100)).isEqualTo(FakeStore.content(2, 0, 100));
      assertThat(stage.stager.status().dropped()).isEqualTo(1);
      fetches.release();
      stage.awaitIdle();
      assertThat(stage.stager.status().completed()).isEqualTo(2);
      stage.stage(stage.inode("f2"));
      assertThat(stage.stager.status().completed()).isEqualTo(3);
    }
  }

  @Test
  void read_noRoom_isSkippedOnceAndSmallerFilesAreStillPlaced() throws Exception {
    try (Stage stage = new Stage(directory, 10 * 4096, 20 * 4096)) {
      Inode large = stage.file("large", 1, 20 * 4096 + 1);
      Inode small = stage.file("small", 2, 5000);
      Inode medium = stage.file("medium", 3, 9 * 4096);
      for (int i = 0; i < 3; i++) {
        assertThat(stage.read(large)).isEqualTo(Stage.expected(1, large));
      }
      stage.stage(small);
      stage.stage(medium);

      assertThat(stage.stager.status().skippedNoRoom()).isEqualTo(1);
      assertThat(stage.copyFile(0, small)).exists();
      assertThat(stage.copyFile(1, medium)).exists();
    }
  }

  @Test
  void read_sourceFailsAtALaterBlock_onlyItsReadersFail() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, 4L * BLOCK);
      stage.faulty.on(READ).from(2L * BLOCK).before(3L * BLOCK).fail(Errno.EREMOTEIO);
      for (int i = 0; i < 3; i++) {
        for (int block : new int[] {3, 0, 1}) {
          long offset = (long) block * BLOCK;
          assertThat(stage.read(inode, offset, BLOCK))
              .isEqualTo(FakeStore.content(1, offset, BLOCK));
        }
        assertThat(errnoOf(() -> stage.read(inode, 2L * BLOCK + 5, 100)))
            .isEqualTo(Errno.EREMOTEIO);
      }
      stage.awaitIdle();
      assertThat(stage.files(0)).isEmpty();
      Await.until("the room is given back", () -> stage.tiers.get(0).status().usedBytes() == 0);

      stage.faulty.clearFaults();
      stage.stage(inode);
      assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"OPEN", "FILE_STATUS", "READ"})
  void read_sourceFails_givesItsErrnoAndWorksAgainAfterwards(Operation operation) throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, 100);
      stage.faulty.on(operation).of("f").fail(Errno.EACCES);
      assertThat(errnoOf(() -> stage.read(inode))).isEqualTo(Errno.EACCES);
      stage.awaitIdle();
      assertThat(stage.stager.status().failed()).isEqualTo(1);

      stage.faulty.clearFaults();
      stage.stage(inode);
      assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
    }
  }

  /** As after the server was replaced: the path can be opened again. */
  @Test
  void read_openFileIsStale_isReadFromItOpenedAnew() throws Exception {
    try (Stage stage = new Stage(directory)) {
      Inode inode = stage.file("f", 1, 100);
      stage.read(inode);
      stage.faulty.on(READ).first().fail(Errno.ESTALE);
      assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2})
  void read_fileChangesWhenABlockIsRead_isNotCopied(int block) throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, 3L * BLOCK);
      stage
          .faulty
          .on(READ)
          .at((long) block * BLOCK)
          .first()
          .run(path -> stage.store.write("f", 2, 3L * BLOCK));
      stage.read(inode);
      stage.awaitIdle();

      assertThat(stage.files(0)).isEmpty();
      assertThat(stage.stager.status().completed()).isZero();
      assertThat(stage.read(inode)).isEqualTo(Stage.expected(2, inode));
    }
  }

  @Test
  void read_lastBlockFirstThenTheFileChanges_isNotCopied() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, 3L * BLOCK);
      Hold fetches = stage.faulty.on(READ).by("fetch").hold();
      assertThat(stage.read(inode, 2L * BLOCK, 10)).isEqualTo(FakeStore.content(1, 2L * BLOCK, 10));
      stage.store.write("f", 2, 3L * BLOCK);
      fetches.release();
      stage.awaitIdle();

      assertThat(stage.copies.has(inode)).isFalse();
      assertThat(stage.files(0)).isEmpty();
      assertThat(stage.read(inode)).isEqualTo(Stage.expected(2, inode));
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {100, 3 * BLOCK})
  void read_pathIsAnotherFileNow_isStaleAndNeverTheOthersContent(int size) throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, size);
      stage.store.file("f", 2, size);

      for (int i = 0; i < 3; i++) {
        assertThat(errnoOf(() -> stage.read(inode, 0, 10))).isEqualTo(Errno.ESTALE);
        assertThat(errnoOf(() -> stage.read(inode, size - 10, 10))).isEqualTo(Errno.ESTALE);
      }
      stage.awaitIdle();
      assertThat(stage.files(0)).isEmpty();
    }
  }

  @Test
  void read_pathIsASymbolicLinkNow_isNotFollowed() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, 100);
      stage.store.file("secret", 2, 100);
      stage.store.symbolicLink("f", "secret");

      assertThat(errnoOf(() -> stage.read(inode))).isEqualTo(Errno.ELOOP);
    }
  }

  @Test
  void read_sourceIsShorterThanItSays_servesWhatIsThereAndIsNotCopied() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      stage.store.file("f", 1, 5000);
      stage.store.lieAboutSize("f", 6000);
      stage.importAll();
      Inode inode = stage.inode("f");

      assertThat(stage.read(inode, 0, 5000)).isEqualTo(FakeStore.content(1, 0, 5000));
      assertThat(errnoOf(() -> stage.read(inode, 4000, 2000))).isEqualTo(Errno.EIO);
      stage.awaitIdle();
      assertThat(stage.files(0)).isEmpty();
    }
  }

  @Test
  void read_noTiers_isAnsweredFromTheSource() throws Exception {
    try (Stage stage = new Stage(directory)) {
      Inode inode = stage.file("f", 1, 3L * BLOCK + 7);

      assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
      assertThat(stage.stager.status().idle()).isTrue();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"WRITE", "COMMIT"})
  void read_tierFailsWhileItTakesACopy_goesOnInTheNextTier(Point point) throws Exception {
    try (Stage stage = new Stage(directory, ROOM, ROOM)) {
      Inode inode = stage.file("f", 1, 2L * BLOCK);
      stage.tiers.get(0).failAt(point);
      assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
      stage.awaitIdle();
      assertThat(stage.tiers.get(0).hasFailed()).isTrue();
      assertThat(stage.stager.status().failed()).isPositive();

      stage.stage(inode);
      assertThat(stage.copyFile(1, inode)).exists();
      assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"FAIL", "SHORT"})
  void read_blockIsStoredButTheTierCannotReadIt_isAnsweredFromTheSource(Fault fault)
      throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, 2L * BLOCK);
      Hold secondBlock = stage.faulty.on(READ).by("fetch").from(1).hold();
      stage.read(inode, 0, 10);
      secondBlock.awaitReached();
      stage.tiers.get(0).faults((point, number) -> point == Point.READ ? fault : Fault.NONE);

      assertThat(stage.read(inode, 5, 1000)).isEqualTo(FakeStore.content(1, 5, 1000));
      secondBlock.release();
      stage.awaitIdle();
      assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
    }
  }

  @Test
  void close_inTheMiddleOfStaging_leavesNothingHalfDone() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, 5L * BLOCK);
      Hold thirdBlock = stage.faulty.on(READ).at(2L * BLOCK).hold();
      stage.read(inode, 0, 10);
      thirdBlock.awaitReached();
      start(stage.stager::close);
      thirdBlock.release();
      join();

      assertThat(stage.files(0)).isEmpty();
      assertThat(stage.tiers.get(0).status().usedBytes()).isZero();
      assertThat(stage.namespace.copies(inode.number())).isEmpty();
      assertThat(stage.stager.status().idle()).isTrue();
      assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
      assertThat(stage.files(0)).isEmpty();
    }
  }

  @Test
  void close_readersGoOn_areAnswered() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, 5L * BLOCK);
      for (int reader = 0; reader < 8; reader++) {
        int at = reader * 500_000;
        start(
            () -> {
              for (int i = 0; i < 20; i++) {
                assertThat(stage.read(inode, at + i, 1000))
                    .isEqualTo(FakeStore.content(1, at + i, 1000));
              }
            });
      }
      stage.stager.close();
      join();
      assertThat(stage.stager.status().idle()).isTrue();
    }
  }

  /** If the kernel reads without pmfs, only the open is visible. */
  @Test
  void copyFile_ofACopy_countsAsUseOfIt() throws Exception {
    List<Long> used = new CopyOnWriteArrayList<>();
    EvictionPolicy policy =
        new EvictionPolicy() {
          @Override
          public void touched(long number) {
            used.add(number);
          }

          @Override
          public long victim(Tier tier, Namespace namespace) {
            return 0;
          }
        };
    try (Stage stage = new Stage(directory, ROOM).with(policy)) {
      Inode inode = stage.file("f", 1, 5000);
      stage.stage(inode);
      used.clear();

      assertThat(stage.stager.copyFile(inode)).isNotNull();

      assertThat(used).containsExactly(inode.number());
    }
  }

  @Test
  void read_tierFullWithLru_evictsAndTakesNewCopies() throws Exception {
    try (Stage stage = new Stage(directory, 32 * 4096).with(new LeastRecentlyUsed(new Random(1)))) {
      for (int i = 0; i < 64; i++) {
        stage.store.file("f" + i, i, 4000);
      }
      stage.importAll();
      for (int i = 0; i < 32; i++) {
        stage.stage(stage.inode("f" + i));
      }
      for (int i = 32; i < 64; i++) {
        Inode inode = stage.inode("f" + i);
        int seed = i;
        Await.until(
            "f" + i + " is in the tier",
            () -> {
              assertThat(stage.read(inode)).isEqualTo(Stage.expected(seed, inode));
              stage.awaitIdle();
              return stage.copies.has(inode);
            });
        assertThat(stage.tiers.get(0).status().usedBytes()).isBetween(4096L, 32L * 4096);
      }
      assertThat(stage.stager.status().evicted()).isGreaterThanOrEqualTo(32);
      for (int i = 0; i < 64; i++) {
        Inode inode = stage.inode("f" + i);
        assertThat(stage.read(inode)).isEqualTo(Stage.expected(i, inode));
      }
    }
  }

  @Test
  void read_lruButTheTierTakesNoCopies_evictsNothing() throws Exception {
    try (Stage stage = new Stage(directory, 32 * 4096).with(new LeastRecentlyUsed(new Random(1)))) {
      for (int i = 0; i < 20; i++) {
        stage.store.file("f" + i, i, 4000);
      }
      stage.importAll();
      for (int i = 0; i < 10; i++) {
        stage.stage(stage.inode("f" + i));
      }
      stage.stager.close();
      stage.tiers.get(0).close();
      // After an unclean stop a tier accepts no copies until it was compared with the records.
      Tier tier =
          new DirectoryTier(
              new TierSettings("ssd:0", "ssd", directory.resolve("tier0"), 32 * 4096, 0),
              null,
              null);
      Copies copies = TestCopies.raw(stage.namespace, List.of(tier));
      Stager stager =
          new Stager(
              stage.namespace,
              stage.source,
              copies,
              new LeastRecentlyUsed(new Random(1)),
              Stage.SETTINGS,
              Share.ALL,
              Lenders.none(),
              () -> {});
      for (int i = 10; i < 20; i++) {
        CollectingSink sink = new CollectingSink();
        stager.serve(stage.inode("f" + i), 0, 4000, sink);
        assertThat(sink.answer()).isEqualTo(FakeStore.content(i, 0, 4000));
      }
      stager.close();
      copies.close();

      assertThat(stager.status().evicted()).isZero();
      assertThat(stage.files(0)).hasSize(10);
    }
  }

  /** What keeps a comparison from its end: the state, at first. */
  private enum Obstacle {
    STATE_CANNOT_BE_WRITTEN("failure"),
    STATE_FAILS_MEANWHILE("listCopies");

    private final String call;

    Obstacle(String call) {
      this.call = call;
    }

    /** Such a state, until it is repaired. */
    Namespace of(Namespace namespace, AtomicBoolean isRepaired, CountDownLatch isMet) {
      InvocationHandler calls =
          (proxy, method, arguments) -> {
            if (isRepaired.get() || !method.getName().equals(call)) {
              return method.invoke(namespace, arguments);
            }
            isMet.countDown();
            if (this == STATE_FAILS_MEANWHILE) {
              throw new StateException("injected", null);
            }
            return "injected";
          };
      return (Namespace)
          Proxy.newProxyInstance(
              Namespace.class.getClassLoader(), new Class<?>[] {Namespace.class}, calls);
    }
  }

  @ParameterizedTest
  @EnumSource
  void compareTiers_stateFailsAtFirst_comparesWhenItIsRepaired(Obstacle obstacle) throws Exception {
    AtomicBoolean isRepaired = new AtomicBoolean();
    CountDownLatch isMet = new CountDownLatch(1);
    try (Stage stage = new Stage(directory, ROOM)) {
      stage.stage(stage.file("f", 1, 4000));
      Inode other = stage.file("g", 2, 4000);
      stage.stager.close();
      stage.tiers.get(0).close();
      Tier tier = uncounted();
      Namespace namespace = obstacle.of(stage.namespace, isRepaired, isMet);
      Copies copies = TestCopies.raw(namespace, List.of(tier));
      Stager stager =
          new Stager(
              namespace,
              stage.source,
              copies,
              EvictionPolicy.NONE,
              Stage.SETTINGS,
              Share.ALL,
              Lenders.none(),
              () -> {});
      stager.compareTiers();
      isMet.await();
      assertThat(tier.status().state()).isEqualTo(TierStatus.State.RECOVERING);

      isRepaired.set(true);
      Await.until("it is compared", () -> tier.status().state() == TierStatus.State.ON);
      stager.serve(other, 0, 4000, new CollectingSink());
      Await.until("it takes a copy", () -> copies.has(other));
      stager.close();
      copies.close();
    }
  }

  /** The tier as it is opened after an unclean stop. */
  private Tier uncounted() throws IOException {
    return new DirectoryTier(
        new TierSettings("ssd:0", "ssd", directory.resolve("tier0"), ROOM, 0), null, null);
  }

  @Test
  void read_tierFullWithNone_keepsWhatIsThere() throws Exception {
    try (Stage stage = new Stage(directory, 8 * 4096)) {
      for (int i = 0; i < 16; i++) {
        stage.store.file("f" + i, i, 4000);
      }
      stage.importAll();
      for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 16; i++) {
          Inode inode = stage.inode("f" + i);
          assertThat(stage.read(inode)).isEqualTo(Stage.expected(i, inode));
          stage.awaitIdle();
        }
      }

      for (int i = 0; i < 16; i++) {
        assertThat(stage.copies.has(stage.inode("f" + i))).isEqualTo(i < 8);
      }
      assertThat(stage.stager.status().evicted()).isZero();
      assertThat(stage.stager.status().skippedNoRoom()).isEqualTo(8);
    }
  }

  @Test
  void read_sinkFails_isEioAndTheSourceIsReadOnce() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, 100);
      assertThatThrownBy(
              () ->
                  stage.stager.serve(
                      inode,
                      0,
                      100,
                      new io.pmfs.memory.ReadSink() {
                        @Override
                        public java.nio.ByteBuffer buffer(int size) {
                          return java.nio.ByteBuffer.allocateDirect(size);
                        }

                        @Override
                        public void accept(io.pmfs.memory.ReadResult piece) throws IOException {
                          throw new IOException("no");
                        }
                      }))
          .isInstanceOfSatisfying(
              FsException.class, e -> assertThat(e.errno()).isEqualTo(Errno.EIO));
      stage.awaitIdle();
      assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
      assertThat(stage.store.bytesRead("f")).isEqualTo(100);
    }
  }

  @Test
  void settings_outOfRange_areRefused() {
    for (Task wrong :
        List.<Task>of(
            () -> new StagerSettings(0, 64 << 20, 1),
            () -> new StagerSettings(257, 64 << 20, 1),
            () -> new StagerSettings(1, 8 * BLOCK - 1, 1),
            () -> new StagerSettings(1, 64 << 20, 0))) {
      assertThatThrownBy(wrong::run).isInstanceOf(IllegalArgumentException.class);
    }
  }
}
