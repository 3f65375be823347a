package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.tier.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem;
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
  private static final int SEEDS = "all".equals(System.getProperty("pmfs.large")) ? 300 : 24;

  /** So long a call at the source lasts for a change that waits for its end. */
  private static final long PATIENCE_NANOS = 20_000_000;

  private static final String[] DIRECTORIES = {"a", "b", "c"};
  private static final String[] FILES = {"e", "f", "g"};

  @TempDir Path directory;

  private final ExecutorService program = Executors.newSingleThreadExecutor();
  private final StringBuilder log = new StringBuilder();
  private Random random = new Random();
  private int serial;
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
        change(driver);
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
              change(driver);
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

  private String pick(String[] from) {
    return from[random.nextInt(from.length)];
  }

  private String name() {
    StringBuilder path = new StringBuilder();
    for (int i = random.nextInt(3); i > 0; i--) {
      path.append(pick(DIRECTORIES)).append('/');
    }
    return path + pick(FILES);
  }

  private String directory() {
    return random.nextInt(2) == 0 ? pick(DIRECTORIES) : pick(DIRECTORIES) + "/" + pick(DIRECTORIES);
  }

  private String any() {
    return random.nextInt(2) == 0 ? name() : directory();
  }

  /** Makes a change, or none if it is not possible now. */
  private void change(Driver driver) throws FsException {
    int kind = random.nextInt(20);
    String one = kind < 10 ? name() : random.nextInt(3) == 0 ? name() : directory();
    String other = kind < 10 ? name() : any();
    String text = "<" + serial++ + ">";
    boolean isExchange = random.nextInt(2) == 0;
    log.append("%d %s %s %b %s%n".formatted(kind, one, other, isExchange, text));
    try {
      switch (kind) {
        case 0, 1, 2 -> put(driver, one, text);
        case 3 -> {
          if (type(driver, one) == FileType.REGULAR) {
            driver.append(one, text);
          }
        }
        case 4 -> {
          if (type(driver, one) == FileType.REGULAR) {
            driver.overwrite(one, 1, "#");
          }
        }
        case 5 -> {
          put(driver, one, text);
          driver.rename(one, other, 0);
        }
        case 6 -> driver.link(one, other);
        case 7 -> driver.unlink(one);
        case 8 -> driver.rename(one, other, isExchange ? OutputCalls.RENAME_EXCHANGE : 0);
        case 9 -> driver.symlink("target" + serial, one);
        case 10, 11, 12 -> driver.mkdir(directory());
        case 13 -> driver.rmdir(one);
        case 14, 15 -> driver.rename(one, directory(), 0);
        case 16, 17 -> driver.rename(one, other, OutputCalls.RENAME_EXCHANGE);
        case 18 -> {
          if (type(driver, other) != null && type(driver, other) != FileType.SYMBOLIC_LINK) {
            driver.chmod(other, isExchange ? 0700 : 0711);
          }
        }
        default -> {
          if (driver.find(one) == null) {
            WritableFileSystem.Opened file = driver.create(one);
            driver.write(file, 0, text);
            driver.unlink(one);
            driver.close(file);
          }
        }
      }
    } catch (FsException e) {
      switch (e.errno()) {
        case ENOENT, EEXIST, ENOTDIR, EISDIR, ENOTEMPTY, EINVAL, EPERM ->
            log.append("    ").append(e.errno()).append('\n');
        default -> throw e;
      }
    }
  }

  private static @Nullable FileType type(Driver driver, String path) throws FsException {
    WritableFileSystem.Node node = driver.find(path);
    return node == null ? null : node.attributes().type();
  }

  private static void put(Driver driver, String path, String text) throws FsException {
    if (type(driver, path) == null || type(driver, path) == FileType.REGULAR) {
      driver.put(path, text);
    }
  }
}
