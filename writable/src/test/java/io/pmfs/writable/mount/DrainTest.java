package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.file.Path;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Promise: a drain ends when the source has everything, and says so. */
@Timeout(120)
class DrainTest {
  private static final int PROGRAMS = 8;
  private static final int DRAINS = 250;
  private static final int FILES = 200;

  @TempDir Path directory;

  /** The last change is made at any moment of a look. */
  @Test
  void drain_whileTheLastChangeIsMade_isTrue() throws Exception {
    ExecutorService programs = Executors.newFixedThreadPool(PROGRAMS);
    try (Driver driver = new Driver(directory, 1, InstantSource.system())) {
      List<Future<?>> draining = new ArrayList<>();
      for (int i = 0; i < PROGRAMS; i++) {
        String name = "program " + i;
        draining.add(programs.submit(() -> drainAgainAndAgain(driver, name)));
      }
      for (Future<?> one : draining) {
        one.get();
      }
    } finally {
      programs.shutdownNow();
    }
  }

  private static Void drainAgainAndAgain(Driver driver, String name) throws Exception {
    for (int i = 0; i < DRAINS; i++) {
      driver.mkdir(name + " " + i);
      assertThat(driver.mount().drain(20_000)).as("%s, drain %d", name, i).isTrue();
    }
    return null;
  }

  // ---- files that the next process finds being written

  private final AtomicLong passedMillis = new AtomicLong();

  private Driver withClock() throws Exception {
    return new Driver(directory, 0, () -> Instant.now().plusMillis(passedMillis.get()));
  }

  /** That it was closed could not be recorded, for example because the state's disk was full. */
  @Test
  void file_whoseCloseTheLastProcessLost_isMissedAndArrives() throws Exception {
    try (Driver driver = withClock()) {
      Opened file = driver.create("a");
      driver.write(file, 0, "content");
      driver.restart();
      assertThat(driver.mount().drain(0)).isFalse();
      assertThat(driver.mount().drainStatus().waitingChanges()).isEqualTo(1);
      assertThat(driver.mount().waiting(10)).containsExactly("a");
      passedMillis.set(60_000);
      driver.mount().drain(0);
      driver.drainAll();
      assertThat(driver.mount().drain(0)).isTrue();
      assertThat(driver.sourceTree()).containsEntry("a", "file 644 content");
      // It was only idle.
      driver.write(file, 0, "CON");
      assertThat(driver.mount().drain(0)).isTrue();
      driver.close(file);
      driver.drainAll();
      assertThat(driver.sourceTree()).containsEntry("a", "file 644 CONtent");
    }
  }

  @Test
  void file_thatIsWrittenOn_isOpenAsBefore() throws Exception {
    try (Driver driver = withClock()) {
      Opened file = driver.create("a");
      driver.write(file, 0, "content");
      driver.restart();
      driver.write(file, 0, "CON");
      assertThat(driver.mount().drain(0)).isTrue();
      passedMillis.set(60_000);
      assertThat(driver.mount().drain(0)).isTrue();
      assertThat(driver.mount().drainStatus().waitingChanges()).isZero();
      driver.close(file);
      driver.drainAll();
      assertThat(driver.sourceTree()).containsEntry("a", "file 644 CONtent");
    }
  }

  /** The kernel sends requests again that the last process did not answer, all at once. */
  @Test
  void file_thatTwoRequestsShowToBeOpen_isOpenOnce() throws Exception {
    ExecutorService programs = Executors.newFixedThreadPool(2);
    try (Driver driver = withClock()) {
      List<Opened> files = new ArrayList<>();
      for (int i = 0; i < FILES; i++) {
        files.add(driver.create("f" + i));
        driver.write(files.get(i), 0, "....");
      }
      driver.restart();
      for (Opened file : files) {
        CyclicBarrier together = new CyclicBarrier(2);
        List<Future<?>> writing = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
          int offset = 2 * i;
          writing.add(
              programs.submit(
                  () -> {
                    together.await();
                    driver.write(file, offset, "ab");
                    return null;
                  }));
        }
        for (Future<?> one : writing) {
          one.get();
        }
        driver.mount().release(file.node().inode(), file.handle());
      }
      driver.drainAll();
      assertThat(driver.sourceTree()).hasSize(FILES);
      assertThat(driver.sourceTree().values()).containsOnly("file 644 abab");
    } finally {
      programs.shutdownNow();
    }
  }

  @Test
  void file_thatWasRemoved_isNotMissed() throws Exception {
    try (Driver driver = withClock()) {
      driver.write(driver.create("a"), 0, "content");
      driver.unlink("a");
      driver.drainAll();
      driver.restart();
      assertThat(driver.mount().drain(0)).isTrue();
    }
  }
}
