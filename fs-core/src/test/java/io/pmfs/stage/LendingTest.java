package io.pmfs.stage;

import static io.pmfs.source.FaultyStore.Operation.FILE_STATUS;
import static io.pmfs.source.FaultyStore.Operation.READ;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.Inode;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.source.LentFile;
import io.pmfs.tier.FaultyTier.Fault;
import io.pmfs.tier.FaultyTier.Point;
import io.pmfs.tier.Hold;
import java.nio.file.Path;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Files of the source that the kernel reads by itself, and the copies made behind it. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class LendingTest {
  private static final int BLOCK = 1 << 20;
  private static final long ROOM = 1L << 30;
  private static final long ENOUGH = Long.MAX_VALUE;

  private final AtomicInteger open = new AtomicInteger();

  @TempDir private Path directory;

  @SuppressWarnings("NullAway.Init")
  LendingTest() {}

  private final class Loan implements LentFile {
    Loan() {
      open.incrementAndGet();
    }

    @Override
    public int descriptor() {
      return -1;
    }

    @Override
    public void closeDescriptor() {}

    @Override
    public void close() {
      open.decrementAndGet();
    }
  }

  private Stage stage(long... capacities) throws Exception {
    Stage stage = new Stage(directory, capacities);
    stage.faulty.lend(path -> new Loan());
    return stage;
  }

  @Test
  void lend_ofAFileWithoutACopy_copiesItBehindTheReader_andLendsNoMoreThen() throws Exception {
    try (Stage stage = stage(ROOM)) {
      Inode inode = stage.file("f", 1, 3L * BLOCK + 5);
      Objects.requireNonNull(stage.stager.lend(inode, ENOUGH)).close();
      stage.awaitIdle();
      assertThat(stage.copyFile(0, inode)).exists();
      assertThat(stage.store.bytesRead("f")).isEqualTo(3L * BLOCK + 5);
      assertThat(stage.stager.lend(inode, ENOUGH)).isNull();
      assertThat(open).hasValue(0);
      assertThat(stage.read(inode)).isEqualTo(Stage.expected(1, inode));
      assertThat(stage.stager.readOrigins().bytesFromTiers())
          .as("the kernel was the first to read it")
          .isEqualTo(3L * BLOCK + 5);
      assertThat(stage.stager.bytesOnlyLent()).isZero();
    }
  }

  /** However long the thread that opens a file pauses between the two questions. */
  @Test
  void lend_afterALookForACopy_isNotLateForTheCopy() throws Exception {
    try (Stage stage = stage(ROOM)) {
      Inode inode = stage.file("f", 1, 3L * BLOCK);
      assertThat(stage.stager.copyFile(inode)).isNull();
      stage.awaitIdle();
      Objects.requireNonNull(stage.stager.lend(inode, ENOUGH)).close();
      stage.awaitIdle();
    }
  }

  @Test
  void lend_ofASmallFile_isLeftToTheDaemon() throws Exception {
    try (Stage stage = stage(ROOM)) {
      Inode small = stage.file("small", 1, BLOCK / 2 - 1);
      Inode large = stage.file("large", 1, BLOCK / 2);
      assertThat(stage.stager.lend(small, ENOUGH)).isNull();
      assertThat(open).hasValue(0);
      assertThat(stage.read(small)).isEqualTo(Stage.expected(1, small));
      Objects.requireNonNull(stage.stager.lend(large, ENOUGH)).close();
      stage.awaitIdle();
    }
  }

  @Test
  void lend_moreThanThePageCacheMayHold_isRefusedUntilOthersAreCopied() throws Exception {
    try (Stage stage = stage(ROOM)) {
      stage.store.file("a", 1, 2L * BLOCK);
      stage.store.file("b", 2, 2L * BLOCK);
      stage.importAll();
      Inode a = stage.inode("a");
      Inode b = stage.inode("b");
      Hold copying = stage.faulty.on(READ).by("fetch").hold();
      LentFile first = Objects.requireNonNull(stage.stager.lend(a, 3L * BLOCK));
      LentFile again = Objects.requireNonNull(stage.stager.lend(a, 3L * BLOCK));
      assertThat(stage.stager.lend(b, 3L * BLOCK)).isNull();
      assertThat(open).hasValue(2);
      first.close();
      again.close();
      copying.release();
      stage.awaitIdle();
      assertThat(stage.stager.evict(a.number())).isTrue();
      assertThat(stage.stager.evict(b.number())).as("its reader got it from the daemon").isTrue();
      for (int i = 0; i < 3; i++) {
        Objects.requireNonNull(stage.stager.lend(b, 3L * BLOCK)).close();
        stage.awaitIdle();
        stage.stager.evict(b.number());
      }
    }
  }

  /** Else its bytes would leave the source now and again when it is copied. */
  @Test
  void lend_moreFilesThanCanBeQueued_isRefused() throws Exception {
    try (Stage stage = stage(ROOM).with(new StagerSettings(1, 64 << 20, 1))) {
      for (int i = 0; i < 3; i++) {
        stage.store.file("f" + i, i, 2L * BLOCK);
      }
      stage.importAll();
      Hold copying = stage.faulty.on(READ).by("fetch").hold();
      Objects.requireNonNull(stage.stager.lend(stage.inode("f0"), ENOUGH)).close();
      Await.until("the fetch thread is busy", () -> stage.stager.status().queued() == 0);
      Objects.requireNonNull(stage.stager.lend(stage.inode("f1"), ENOUGH)).close();
      assertThat(stage.stager.lend(stage.inode("f2"), ENOUGH)).isNull();
      assertThat(open).hasValue(0);
      copying.release();
      stage.awaitIdle();
    }
  }

  @Test
  void lend_withoutRoomForACopy_countsWhatTheSourceIsAskedFor() throws Exception {
    try (Stage stage = stage(BLOCK)) {
      Inode inode = stage.file("f", 1, 2L * BLOCK);
      for (int i = 1; i <= 2; i++) {
        Objects.requireNonNull(stage.stager.lend(inode, 0)).close();
        assertThat(stage.stager.bytesOnlyLent()).isEqualTo(i * 2L * BLOCK);
      }
    }
  }

  @Test
  void lend_ofAFileThatChangedSinceItWasLookedUp_isRefused() throws Exception {
    try (Stage stage = stage(ROOM)) {
      Inode inode = stage.file("f", 1, 2L * BLOCK);
      stage.store.write("f", 2, 2L * BLOCK);
      assertThat(stage.stager.lend(inode, ENOUGH)).isNull();
      assertThat(open).hasValue(0);
    }
  }

  @Test
  void lend_ofAFileThatChangesWhileItIsCopied_leavesNoCopy() throws Exception {
    try (Stage stage = stage(ROOM)) {
      Inode inode = stage.file("f", 1, 2L * BLOCK);
      Hold copying = stage.faulty.on(READ).by("fetch").hold();
      Objects.requireNonNull(stage.stager.lend(inode, ENOUGH)).close();
      stage.store.write("f", 2, 2L * BLOCK);
      copying.release();
      stage.awaitIdle();
      assertThat(stage.copies.has(inode)).isFalse();
    }
  }

  @Test
  void lend_anErrorWhenTheCopyIsBegun_closesTheFile() throws Exception {
    try (Stage stage = stage(ROOM)) {
      Inode inode = stage.file("f", 1, 2L * BLOCK);
      stage
          .tiers
          .get(0)
          .faults(
              (point, number) -> {
                if (point == Point.CREATE) {
                  throw new OutOfMemoryError("of this test");
                }
                return Fault.NONE;
              });
      assertThatThrownBy(() -> stage.stager.lend(inode, ENOUGH))
          .isInstanceOf(OutOfMemoryError.class);
      assertThat(open).hasValue(0);
    }
  }

  @Test
  void lend_whileTheSourceFails_failsAsItDoes() throws Exception {
    try (Stage stage = stage(ROOM)) {
      Inode inode = stage.file("f", 1, 2L * BLOCK);
      stage.faulty.on(FILE_STATUS).fail(Errno.EIO);
      assertThatThrownBy(() -> stage.stager.lend(inode, ENOUGH))
          .isInstanceOfSatisfying(
              FsException.class, e -> assertThat(e.errno()).isEqualTo(Errno.EIO));
      assertThat(open).hasValue(0);
    }
  }
}
