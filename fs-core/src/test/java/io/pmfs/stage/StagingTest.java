package io.pmfs.stage;

import static io.pmfs.source.FaultyStore.Operation.READ;
import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.CopyRecord;
import io.pmfs.metadata.Inode;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.source.FakeStore;
import io.pmfs.stage.Staging.Outcome.Result;
import io.pmfs.stage.copies.Placement;
import io.pmfs.stage.formats.Blocks;
import io.pmfs.tier.FaultyTier.Fault;
import io.pmfs.tier.FaultyTier.Point;
import io.pmfs.tier.Hold;
import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Timeout(60)
final class StagingTest {
  private static final int BLOCK = Blocks.SIZE;
  private static final long ROOM = 256L << 20;

  @TempDir private Path directory;
  private final AtomicLong moved = new AtomicLong();
  private final ExecutorService threads = Executors.newCachedThreadPool();

  @AfterEach
  void stopThreads() {
    threads.shutdownNow();
  }

  private Staging staging(Stage stage, Placement placement) {
    return stage.stager.staging(placement, Pace.UNLIMITED, moved::addAndGet);
  }

  private Staging staging(Stage stage) {
    return staging(stage, Placement.ANYWHERE);
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7})
  void stage_ofAFile_copiesItOnceAndTellsItsBytes(int size) throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, size);
      Staging.Outcome outcome = staging(stage).stage(inode);

      assertThat(outcome.result()).isEqualTo(size == 0 ? Result.PRESENT : Result.STAGED);
      assertThat(outcome.movedBytes()).isEqualTo(size).isEqualTo(moved.get());
      assertThat(staging(stage).stage(inode).result()).isEqualTo(Result.PRESENT);
      assertThat(stage.store.bytesRead("f")).isEqualTo(size);
      assertThat(stage.stager.status().idle()).isTrue();
      stage.restart();
      if (size > 0) {
        assertThat(stage.read(inode)).isEqualTo(FakeStore.content(1, 0, size));
      }
      assertThat(stage.store.bytesRead("f")).isEqualTo(size);
    }
  }

  @Test
  void stage_ofAFileThatAReaderIsReading_waitsForItAndReadsTheRest() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, 3L * BLOCK);
      Hold secondBlock = stage.faulty.on(READ).at(BLOCK).hold();
      Future<byte[]> reader = threads.submit(() -> stage.read(inode, BLOCK, 10));
      secondBlock.awaitReached();
      FutureTask<Staging.Outcome> staged = new FutureTask<>(() -> staging(stage).stage(inode));
      Thread stagingThread = new Thread(staged, "staging");
      stagingThread.start();
      Await.until("the rest is read", () -> stage.store.bytesRead("f") == 2L * BLOCK);
      // Any thread may read the rest; the copy must not be complete before the staging has joined
      // its fetch.
      Await.until(
          "staging waits for the reader",
          () -> stagingThread.getState() == Thread.State.TIMED_WAITING);
      assertThat(staged.isDone()).isFalse();
      secondBlock.release();

      assertThat(staged.get().result()).isEqualTo(Result.STAGED);
      assertThat(reader.get()).isEqualTo(FakeStore.content(1, BLOCK, 10));
      assertThat(stage.store.bytesRead("f")).isEqualTo(3L * BLOCK);
    }
  }

  @Test
  void cancel_whileAReaderReads_comesBackAndLeavesTheReaderItsFile() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, 2L * BLOCK);
      Hold firstBlock = stage.faulty.on(READ).at(0).hold();
      Future<byte[]> reader = threads.submit(() -> stage.read(inode));
      firstBlock.awaitReached();
      Staging staging = staging(stage);
      Future<Staging.Outcome> staged = threads.submit(() -> staging.stage(inode));
      Await.until("the second block is read", () -> stage.store.bytesRead("f") == BLOCK);
      staging.cancel();

      assertThat(staged.get().result()).isEqualTo(Result.CANCELLED);
      firstBlock.release();
      assertThat(reader.get()).isEqualTo(FakeStore.content(1, 0, 2 * BLOCK));
      stage.awaitIdle();
      assertThat(stage.store.bytesRead("f")).isEqualTo(2L * BLOCK);
    }
  }

  @Test
  void cancel_whileItReads_keepsNothingHalf() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, 2L * BLOCK);
      Staging staging = staging(stage);
      stage.faulty.on(READ).run(path -> staging.cancel());

      assertThat(staging.stage(inode).result()).isEqualTo(Result.CANCELLED);
      stage.awaitIdle();
      assertThat(stage.files(0)).isEmpty();
      assertThat(stage.tiers.get(0).status().usedBytes()).isZero();
    }
  }

  @Test
  void help_withoutALargeFile_doesNothing() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      assertThat(staging(stage).help()).isFalse();
    }
  }

  @Test
  void stage_sourceFails_saysWhyAndMayBeTriedAgain() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, 10);
      stage.faulty.on(READ).of("f").fail(Errno.EIO);
      Staging.Outcome outcome = staging(stage).stage(inode);
      assertThat(outcome.result()).isEqualTo(Result.SOURCE_FAILED);
      assertThat(outcome.reason()).contains("EIO");
      stage.faulty.clearFaults();

      assertThat(staging(stage).stage(inode).result()).isEqualTo(Result.STAGED);
    }
  }

  @Test
  void stage_firstTierFull_goesToTheNextAndThenSaysSo() throws Exception {
    try (Stage stage = new Stage(directory, ROOM, ROOM)) {
      Inode first = stage.file("f", 1, 10);
      Inode second = stage.file("g", 2, 10);
      stage.tiers.get(0).faults((point, number) -> point == Point.WRITE ? Fault.FULL : Fault.NONE);
      assertThat(staging(stage).stage(first).result()).isEqualTo(Result.STAGED);
      assertThat(stage.namespace.copies(first.number()).get(0).tier()).isEqualTo("ssd:1");
      stage.tiers.get(1).faults((point, number) -> point == Point.WRITE ? Fault.FULL : Fault.NONE);

      assertThat(staging(stage).stage(second).result()).isEqualTo(Result.NO_ROOM);
    }
  }

  @Test
  void stage_everyTierFailed_saysWhich() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, 10);
      stage.tiers.get(0).failAt(Point.WRITE);
      Staging.Outcome outcome = staging(stage).stage(inode);

      assertThat(outcome.result()).isEqualTo(Result.TIER_FAILED);
      assertThat(outcome.reason()).contains("ssd:0", "WRITE");
    }
  }

  @Test
  void stage_ofAPinnedCopyToAnotherTier_staysPinned() throws Exception {
    try (Stage stage = new Stage(directory, ROOM, ROOM)) {
      Inode inode = stage.file("f", 1, 10);
      staging(stage, new Placement(null, true)).stage(inode);
      staging(stage, new Placement("ssd:1", false)).stage(inode);

      assertThat(stage.namespace.copies(inode.number()))
          .hasSize(1)
          .allMatch(CopyRecord::pinned)
          .allMatch(copy -> copy.tier().equals("ssd:1"));
    }
  }

  @Test
  void stage_afterTheStagerStopped_isCancelled() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, 10);
      Staging staging = staging(stage);
      stage.stager.close();

      assertThat(staging.stage(inode).result()).isEqualTo(Result.CANCELLED);
    }
  }

  @Test
  void stage_whileAFetchOfTheFileEnds_copiesItAnew() throws Exception {
    StagerSettings oneThread = new StagerSettings(1, 16 << 20, 1000);
    try (Stage stage = new Stage(directory, ROOM).with(oneThread)) {
      CountDownLatch end = new CountDownLatch(1);
      CountDownLatch closes = new CountDownLatch(1);
      stage.store.file("busy", 1, 3L * BLOCK);
      Inode inode = stage.file("f", 1, 3L * BLOCK);
      Hold busy = stage.faulty.on(READ).of("busy").from(1).hold();
      stage.read(stage.inode("busy"), 0, 10);
      stage.read(inode, 0, 10);
      Await.until("a block of each is stored", () -> stage.files(0).size() == 2);
      stage
          .tiers
          .get(0)
          .faults(
              (point, number) -> {
                if (point == Point.CLOSE && number == inode.number() && closes.getCount() > 0) {
                  closes.countDown();
                  await(end);
                }
                return Fault.NONE;
              });
      Future<Boolean> evicted = threads.submit(() -> stage.stager.evict(inode.number()));
      await(closes);

      assertThat(staging(stage).stage(inode).result()).isEqualTo(Result.STAGED);
      busy.release();
      end.countDown();
      // Whether it found the new copy depends on which thread closed the old one.
      evicted.get();
    }
  }

  @Test
  void stageIf_notWanted_asksTheSourceForNothing() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, BLOCK);

      assertThat(staging(stage).stageIf(inode, () -> false).result()).isEqualTo(Result.CANCELLED);
      assertThat(stage.store.bytesRead("f")).isZero();
      assertThat(staging(stage).stageIf(inode, () -> true).result()).isEqualTo(Result.STAGED);
      assertThat(staging(stage).stageIf(inode, () -> false).result()).isEqualTo(Result.PRESENT);
    }
  }

  /**
   * A reader may read the file to its end, so that it is dropped, between the copy and the task's
   * last check.
   */
  @Test
  void stageIf_droppedRightAfterItWasCopied_isStaged() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      Inode inode = stage.file("f", 1, BLOCK);
      AtomicBoolean wanted = new AtomicBoolean(true);
      stage
          .tiers
          .get(0)
          .faults(
              (point, number) -> {
                if (point == Point.CLOSE) {
                  wanted.set(false);
                  assertThat(stage.copies.evictUnpinned(number)).isTrue();
                }
                return Fault.NONE;
              });
      assertThat(staging(stage).stageIf(inode, wanted::get).result()).isEqualTo(Result.STAGED);
      assertThat(stage.copies.has(inode)).isFalse();
    }
  }

  @Test
  void drop_whileAReaderHasItCopied_leavesNoCopy() throws Exception {
    try (Stage stage = new Stage(directory, ROOM)) {
      CountDownLatch dropped = new CountDownLatch(1);
      CountDownLatch written = new CountDownLatch(1);
      Inode inode = stage.file("f", 1, BLOCK);
      stage
          .tiers
          .get(0)
          .faults(
              (point, number) -> {
                if (point == Point.WRITE && number == inode.number()) {
                  written.countDown();
                  await(dropped);
                }
                return Fault.NONE;
              });
      assertThat(stage.read(inode)).isEqualTo(FakeStore.content(1, 0, BLOCK));
      await(written);

      staging(stage).drop(inode.number());
      dropped.countDown();
      stage.awaitIdle();
      assertThat(stage.copies.has(inode)).isFalse();
      assertThat(stage.files(0)).isEmpty();
    }
  }
}
