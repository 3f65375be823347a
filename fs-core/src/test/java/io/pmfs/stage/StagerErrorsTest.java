package io.pmfs.stage;

import static io.pmfs.source.FaultyStore.Operation.OPEN;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.Inode;
import io.pmfs.posix.Await;
import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.FsException;
import io.pmfs.source.FakeStore;
import io.pmfs.source.FaultyStore.Answer;
import io.pmfs.stage.formats.Blocks;
import io.pmfs.tier.FaultyTier;
import io.pmfs.tier.Hold;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Errors, not only exceptions: whatever a step throws, readers get their bytes, nothing waits for
 * an abandoned claim, and everything is copied after the errors end.
 */
@Timeout(300)
final class StagerErrorsTest {
  private static final int BLOCK = Blocks.SIZE;
  private static final long ROOM = 64L << 20;
  private static final int READERS = 4;

  private static final List<Error> ERRORS =
      List.of(
          new OutOfMemoryError("Cannot reserve 1048576 bytes of direct buffer memory"),
          new StackOverflowError(),
          new NoClassDefFoundError("io/pmfs/Nothing"));

  @TempDir private Path directory;
  private final ExecutorService readers = Executors.newFixedThreadPool(READERS);
  private final AtomicInteger steps = new AtomicInteger();

  @AfterEach
  void stopReaders() {
    readers.shutdownNow();
  }

  private void step(int at) {
    if (steps.getAndIncrement() == at) {
      throw ERRORS.get(at % ERRORS.size());
    }
  }

  private void throwAt(Stage stage, int at) {
    steps.set(0);
    stage.faulty.faults(
        (operation, path, offset) -> {
          step(at);
          return Answer.WHOLE;
        });
    stage
        .tiers
        .get(0)
        .faults(
            (point, number) -> {
              if (point != FaultyTier.Point.CLOSE) {
                step(at);
              }
              return FaultyTier.Fault.NONE;
            });
  }

  private void readAll(Stage stage, List<Inode> files, String what) throws Exception {
    List<Callable<Boolean>> reads = new ArrayList<>();
    for (int reader = 0; reader < READERS; reader++) {
      reads.add(
          () -> {
            for (int i = 0; i < files.size(); i++) {
              assertThat(stage.read(files.get(i)))
                  .as("%s, file %d", what, i)
                  .isEqualTo(Stage.expected(i, files.get(i)));
            }
            return true;
          });
    }
    for (Future<Boolean> read : readers.invokeAll(reads, 60, TimeUnit.SECONDS)) {
      assertThat(read.isCancelled()).as("%s: a reader hangs", what).isFalse();
      assertThat(read.get()).isTrue();
    }
  }

  private static List<Inode> files(Stage stage) throws Exception {
    List<Inode> files = new ArrayList<>();
    for (long size : new long[] {1000, BLOCK, 3L * BLOCK + 7}) {
      files.add(stage.file("f" + files.size(), files.size(), size));
    }
    return files;
  }

  /** After the errors: each file gets a copy, and no trace of the failures is left. */
  private static void recover(Stage stage, List<Inode> files, String what) throws Exception {
    try {
      stage.awaitIdle();
    } catch (AssertionError e) {
      throw new AssertionError(what, e);
    }
    stage.tiers.get(0).clearFaults();
    stage.faulty.clearFaults();
    for (int i = 0; i < files.size(); i++) {
      Inode file = files.get(i);
      assertThat(stage.read(file)).as(what).isEqualTo(Stage.expected(i, file));
      stage.awaitIdle();
      assertThat(stage.copies.has(file)).as("%s: a copy of file %d", what, i).isTrue();
    }
    assertThat(stage.tiers.get(0).openWriters()).as(what).isZero();
  }

  private boolean runWith(int at) throws Exception {
    try (Stage stage = new Stage(directory.resolve("at" + at), ROOM)) {
      List<Inode> files = files(stage);
      throwAt(stage, at);
      readAll(stage, files, "step " + at);
      boolean isThrown = steps.get() > at;
      recover(stage, files, "step " + at);
      return isThrown;
    }
  }

  @Test
  void error_atAnyStepOfSourceOrTier_isNoReadersError() throws Exception {
    int at = 0;
    while (runWith(at)) {
      at++;
    }
    assertThat(at).isGreaterThan(15);
  }

  /** The reader has left the rest to the thread. */
  @Test
  void error_whenTheRestOfAFileIsOpened_endsItsFetch() throws Exception {
    Hold thrown = new Hold();
    thrown.release();
    try (Stage stage = new Stage(directory.resolve("rest"), ROOM)) {
      stage.withThreads(
          name -> {
            AtomicInteger made = new AtomicInteger();
            return work -> new FirstAt(thrown, work, name + "-" + made.incrementAndGet());
          });
      List<Inode> files = files(stage);
      stage
          .faulty
          .on(OPEN)
          .by("fetch-")
          .run(
              path -> {
                thrown.pass();
                throw new StackOverflowError();
              });
      assertThat(stage.read(files.get(2), 0, BLOCK)).isEqualTo(FakeStore.content(2, 0, BLOCK));
      recover(stage, files, "an error at the open");
    }
  }

  /** The thread of the first fetch, whose starter waits until it has reached the fault. */
  private static final class FirstAt extends Thread {
    private final Hold reached;

    FirstAt(Hold reached, Runnable work, String name) {
      super(null, work, name);
      this.reached = reached;
      setDaemon(true);
    }

    @Override
    public synchronized void start() {
      super.start();
      if (getName().equals("fetch-2")) { // the pool starts the first one itself
        reached.awaitReached();
      }
    }
  }

  /** It has claimed the only block of its file, and no other thread knows of the fetch. */
  @Test
  void reader_interruptedWhileItWaitsForMemory_leavesTheCopyToAnother() throws Exception {
    try (Stage stage = new Stage(directory.resolve("interrupted"), ROOM)) {
      stage.with(new StagerSettings(1, 8 * BLOCK, 10));
      List<Inode> files = new ArrayList<>();
      for (int i = 0; i <= 8; i++) { // one more than there is memory for
        files.add(stage.file("f" + i, i, BLOCK));
      }
      Hold hold = new Hold();
      stage
          .tiers
          .get(0)
          .faults(
              (point, number) -> {
                if (point == FaultyTier.Point.WRITE) {
                  hold.pass();
                }
                return FaultyTier.Fault.NONE;
              });
      Thread.currentThread().interrupt();
      assertThatThrownBy(
              () -> {
                for (Inode file : files) {
                  stage.read(file);
                }
              })
          .isInstanceOf(FsException.class);
      assertThat(Thread.interrupted()).isTrue();
      hold.release();
      recover(stage, files, "an interrupted reader");
    }
  }

  // ---- threads

  /** More than the system can provide: starting such a thread fails as when there are too many. */
  private static final long TOO_MUCH_STACK = 1L << 50;

  private volatile int available;
  private final AtomicInteger refused = new AtomicInteger();

  private ThreadFactory threads(String name) {
    ThreadFactory some = DaemonThread.numbered(name);
    AtomicInteger made = new AtomicInteger();
    return work -> {
      if (made.getAndIncrement() < available) {
        return some.newThread(work);
      }
      refused.incrementAndGet();
      return new Thread(null, work, "none", TOO_MUCH_STACK);
    };
  }

  /** The thread limit is reached after the mount was announced, and lifted later. */
  @Test
  void threads_thatCannotBeStarted_makeReadsSlowerOnly() throws Exception {
    for (int threads = 1; threads <= 3; threads++) {
      available = threads;
      try (Stage stage = new Stage(directory.resolve("threads" + available), ROOM)) {
        stage.withThreads(this::threads);
        List<Inode> files = files(stage);
        readAll(stage, files, available + " threads of each kind");
        stage.awaitIdle();
        for (Inode file : files) {
          stage.stager.copyFile(file);
          assertThat(stage.copies.has(file)).isTrue();
        }
        // Verifying large copies continues too, and is requested again after an error.
        Await.until(
            "the large copy is verified", () -> stage.stager.copyFile(files.get(2)) != null);
      }
    }
    assertThat(refused.get()).isPositive();
  }
}
