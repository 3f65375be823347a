package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.file.Path;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Promise: a request that waits for room, or for another one that does, or that copies a file, ends
 * when its program gets a signal or the mount ends.
 */
class InterruptedWaitTest {
  private static final long UNIQUE = 1_000_000;
  private static final long SECONDS = 20;
  private static final String LARGE = "x".repeat(64 << 10);

  /** More than is copied at once. */
  private static final String MEBIBYTES = "x".repeat(2 << 20);

  @TempDir Path directory;

  private Driver driver;
  private Opened file;

  @BeforeEach
  void open() throws Exception {
    driver = new Driver(directory);
    driver.setCapacity(64 << 10);
    driver.remount();
    driver.put("full", LARGE);
    file = driver.create("file");
  }

  @AfterEach
  void close() {
    driver.close();
  }

  private interface Call {
    void make() throws FsException;
  }

  private record Request(Thread thread, FutureTask<Void> result) {
    void assertInterrupted() {
      assertThatThrownBy(() -> result.get(SECONDS, TimeUnit.SECONDS))
          .isInstanceOf(ExecutionException.class)
          .hasMessageContaining("EINTR");
    }
  }

  /** Makes a call that waits, in a thread of its own. */
  private Request begin(Call call) {
    FutureTask<Void> result =
        new FutureTask<>(
            () -> {
              driver.mount().interrupts().begin(UNIQUE);
              try {
                call.make();
              } finally {
                driver.mount().interrupts().end(UNIQUE);
              }
              return null;
            });
    Thread thread = new Thread(result);
    thread.start();
    long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
    while (thread.getState() != Thread.State.TIMED_WAITING && System.nanoTime() - end < 0) {
      assertThat(result.isDone()).isFalse();
      Thread.onSpinWait();
    }
    return new Request(thread, result);
  }

  private Request writer() {
    return begin(() -> driver.write(file, 0, LARGE));
  }

  @Test
  void thread_thatWaitsForRoom_canBeInterrupted() {
    Request writer = writer();
    writer.thread().interrupt();
    writer.assertInterrupted();
  }

  @Test
  void request_thatWaitsForRoom_endsWithASignal() {
    Request writer = writer();
    driver.mount().interrupts().interrupt(UNIQUE);
    writer.assertInterrupted();
  }

  private void assertInterruptible(Call call) {
    Request writer = writer();
    Request byThread = begin(call);
    byThread.thread().interrupt();
    byThread.assertInterrupted();
    Request bySignal = begin(call);
    driver.mount().interrupts().interrupt(UNIQUE);
    bySignal.assertInterrupted();
    writer.thread().interrupt();
    writer.assertInterrupted();
  }

  @Test
  void open_ofAFileThatWaitsForRoom_canBeInterrupted() {
    assertInterruptible(() -> driver.put("file", ""));
  }

  @Test
  void write_toAFileThatWaitsForRoom_canBeInterrupted() {
    assertInterruptible(() -> driver.write(file, 0, "x"));
  }

  @Test
  void read_ofAFileThatWaitsForRoom_canBeInterrupted() {
    assertInterruptible(() -> driver.read(file.node().inode()));
  }

  // ---- requests that copy

  /** The program gets a signal when its request makes such a call. */
  private void openWithTwoTiers(String interrupted) throws Exception {
    driver.close();
    driver = new Driver(directory.resolve("two"));
    driver.setCapacity(3 << 20);
    driver.setHasOthers();
    driver.setPause(
        call -> {
          if (call.equals(interrupted)) {
            driver.mount().interrupts().interrupt(UNIQUE);
          }
        });
    driver.remount();
  }

  private void assertInterruptedByCopying(Call call) throws FsException {
    driver.mount().interrupts().begin(UNIQUE);
    try {
      assertThatThrownBy(call::make).hasMessageContaining("EINTR");
    } finally {
      driver.mount().interrupts().end(UNIQUE);
    }
    driver.mount().tidy();
  }

  @Test
  void write_thatCopiesAFileOfTheSource_canBeInterrupted_andLeavesNothing() throws Exception {
    openWithTwoTiers("write");
    driver.calls.makeAtSource("large", MEBIBYTES);
    assertInterruptedByCopying(() -> driver.overwrite("large", 0, "new"));
    assertThat(driver.calls.fileCount(driver.places)).isZero();
    driver.put("first", MEBIBYTES);
    driver.put("second", MEBIBYTES);
    assertThat(driver.calls.fileCount(driver.others)).isOne();
    driver.overwrite("large", 0, "new");
    assertThat(driver.read("large")).isEqualTo("new" + MEBIBYTES.substring(3));
  }

  @Test
  void write_thatMovesAFileToAnotherTier_canBeInterrupted_andLeavesNothing() throws Exception {
    openWithTwoTiers("read");
    Opened moved = driver.create("moved");
    driver.write(moved, 0, MEBIBYTES);
    driver.calls.setRefusing(driver.places, Errno.ENOSPC);
    assertInterruptedByCopying(() -> driver.write(moved, MEBIBYTES.length(), "more"));
    assertThat(driver.calls.fileCount(driver.others)).isZero();
    assertThat(driver.read("moved")).isEqualTo(MEBIBYTES);
    driver.write(moved, MEBIBYTES.length(), "more");
    assertThat(driver.calls.fileCount(driver.others)).isOne();
    assertThat(driver.read("moved")).isEqualTo(MEBIBYTES + "more");
  }
}
