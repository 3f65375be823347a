package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.FsException;
import io.pmfs.posix.Requested;
import java.nio.file.Path;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Directories move, and take the places of each other and of files, while a program goes on during
 * the calls at the source, and the process dies in some of them: afterwards the source is what the
 * mount shows, and nothing was refused.
 */
class MovingTreeTest {
  private static final int CHANGES = 120;
  private static final int SEEDS = Requested.count("large", 300, 8);

  /** So long a call at the source lasts for a change that waits for its end. */
  private static final long PATIENCE_NANOS = 20_000_000;

  @TempDir Path directory;

  private final ExecutorService program = Executors.newSingleThreadExecutor();
  private final StringBuilder log = new StringBuilder();
  private Random random = new Random();
  private MovingChanges changes = MovingChanges.ofNames(random, log);
  private int callsToLive = -1;

  /** Whether the program may make changes during calls at the source. */
  private boolean isFree = true;

  /** A change that waits for the end of a step. */
  private @Nullable Future<?> waiting;

  @AfterEach
  void end() {
    program.shutdownNow();
  }

  static LongStream seeds() {
    String one = System.getProperty("pmfs.seed");
    return one != null ? LongStream.of(Long.parseLong(one)) : LongStream.range(0, SEEDS);
  }

  @ParameterizedTest
  @MethodSource("seeds")
  void source_afterDeaths_isWhatTheMountShows(long seed) throws Exception {
    random = new Random(seed);
    changes = MovingChanges.ofNames(random, log);
    try (Driver driver = new Driver(directory)) {
      driver.calls.watch(
          new FakeCalls.Watcher() {
            @Override
            public void before(String call, FileName name) throws FsException {
              meanwhile(driver, "before " + call + " " + name);
            }

            @Override
            public void after(String call, FileName name) {
              try {
                meanwhile(driver, "after " + call + " " + name);
              } catch (FsException e) {
                throw new AssertionError(e);
              }
            }
          });
      for (int i = 0; i < CHANGES; i++) {
        changes.make(driver);
        if (random.nextInt(8) == 0) {
          callsToLive = random.nextInt(2) == 0 ? random.nextInt(30) : -1;
          steps(driver, random.nextInt(12));
          callsToLive = -1;
        }
        if (random.nextInt(100) == 0) {
          drain(driver);
        }
      }
      drain(driver);
    } catch (Exception | AssertionError e) {
      throw new AssertionError("seed %d:%n%s".formatted(seed, log), e);
    }
  }

  private void drain(Driver driver) throws FsException {
    log.append("drain\n");
    isFree = false;
    driver.drainAll();
    isFree = true;
    assertThat(driver.mount().drainStatus().failures()).isEmpty();
    assertThat(driver.mount().drainStatus().waitingChanges()).isZero();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree());
    assertThat(driver.sourceTimes()).isEqualTo(driver.times());
    assertThat(driver.temporaries()).isEmpty();
  }

  private void steps(Driver driver, int count) throws Exception {
    log.append("steps ").append(count).append('\n');
    try {
      for (int steps = count; steps > 0 && driver.mount().step(); steps--) {
        driver.mount().tidy();
        log.append("-\n");
        if (waiting != null) {
          waiting.get();
          waiting = null;
        }
      }
    } catch (FakeCalls.Death e) {
      callsToLive = -1;
      isFree = false;
      driver.restart();
      isFree = true;
      log.append("restarted\n");
    }
  }

  /** The program makes changes during a call at the source, if they need not wait for its end. */
  private void meanwhile(Driver driver, String call) throws FsException {
    if (!isFree || waiting != null) {
      return;
    }
    log.append("  ").append(call).append('\n');
    if (random.nextInt(10) == 0) {
      isFree = false;
      boolean isDone = true;
      for (int i = random.nextInt(3); i >= 0 && isDone; i--) {
        isDone = changeMeanwhile(driver);
      }
      if (!isDone) {
        callsToLive = -1;
      }
      isFree = true;
    }
    if (callsToLive >= 0 && callsToLive-- == 0) {
      log.append("death\n");
      throw new FakeCalls.Death();
    }
  }

  /** Returns false if the change waits for the end of the step. */
  private boolean changeMeanwhile(Driver driver) {
    Future<?> made =
        program.submit(
            () -> {
              changes.make(driver);
              return null;
            });
    long end = System.nanoTime() + PATIENCE_NANOS;
    try {
      while (!made.isDone() && System.nanoTime() - end < 0) {
        driver.calls.wait(1); // Others may make calls meanwhile.
      }
      if (made.isDone()) {
        made.get();
      }
    } catch (InterruptedException | ExecutionException e) {
      throw new AssertionError(e);
    }
    if (!made.isDone()) {
      waiting = made;
      log.append("(waits)\n");
    }
    return made.isDone();
  }
}
