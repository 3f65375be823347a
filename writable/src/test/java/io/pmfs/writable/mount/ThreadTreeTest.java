package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import java.nio.file.Path;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Several programs change one tree while calls at the source fail, are made without an answer, are
 * refused, or are the last ones of a process: in the end the source has what the mount shows, and
 * nothing was taken for another program's.
 */
class ThreadTreeTest {
  private static final int CHANGES = 150;
  private static final int ROUNDS = 6;
  private static final int CHANGES_AT_ONCE = 15;
  private static final int THREADS = 3;
  private static final boolean IS_LARGE = "all".equals(System.getProperty("pmfs.large"));
  private static final long DRAIN_MILLIS = 60_000;
  private static final int PASSES = 10;

  /** Those of which a call may also end that was made; a source without room made nothing. */
  private static final List<Errno> LATE_ERRORS =
      List.of(Errno.EIO, Errno.EBUSY, Errno.ESTALE, Errno.ETIMEDOUT);

  private static final List<Errno> ERRORS =
      Stream.concat(LATE_ERRORS.stream(), Stream.of(Errno.ENOSPC)).toList();

  private static final String[] REFUSED_CALLS = {"mkdir", "rmdir", "unlink", "link", "symlink"};
  private static final String[] NAMES = {"a", "b", "c", "e", "f", "g"};

  @TempDir Path directory;

  private final ExecutorService threads = Executors.newFixedThreadPool(THREADS);

  @SuppressWarnings("JdkObsolete") // Many threads write to it.
  private final StringBuffer log = new StringBuffer();

  private final List<TreeProgram> programs = new ArrayList<>();
  private Random random = new Random();

  @AfterEach
  void endThreads() {
    threads.shutdownNow();
  }

  private static LongStream seeds(int few, int many) {
    String one = System.getProperty("pmfs.seed");
    return one != null
        ? LongStream.of(Long.parseLong(one))
        : LongStream.range(0, IS_LARGE ? many : few);
  }

  static LongStream seeds() {
    return seeds(4, 300);
  }

  static LongStream threadSeeds() {
    return seeds(1, 60);
  }

  /** What happens at calls at the source. */
  private enum Trouble {
    NONE,
    DEATH_BEFORE,
    DEATH_AFTER,
    FAILURE_BEFORE,
    FAILURE_AFTER,
    MANY_FAILURES
  }

  /** Troubles of the source and of the process. */
  private final class Troubles implements FakeCalls.Watcher {
    private final Random random;
    private Trouble trouble = Trouble.NONE;
    private final Thread committer = Thread.currentThread();
    private boolean isStepping;
    private int callsLeft;
    private boolean isDead;
    private @Nullable String refusedCall;
    private FileName refused = FileName.of("");

    Troubles(long seed) {
      random = new Random(seed);
    }

    synchronized void begin(Trouble next, int calls) {
      trouble = next;
      callsLeft = calls;
      isDead = false;
      log.append("    (").append(next).append(' ').append(calls).append(")\n");
    }

    synchronized void refuse(String call, String name) {
      log.append("    (refused: ").append(call).append(' ').append(name).append(")\n");
      refusedCall = call;
      refused = FileName.of(name);
    }

    synchronized void end() {
      trouble = Trouble.NONE;
      refusedCall = null;
      isDead = false;
    }

    synchronized boolean isDead() {
      return isDead;
    }

    synchronized void setStepping(boolean isStepping) {
      this.isStepping = isStepping;
    }

    private boolean isNow() {
      return callsLeft-- == 0;
    }

    @Override
    public synchronized void before(String call, FileName name) throws FsException {
      if (isDead) {
        throw new FakeCalls.Death();
      }
      if (call.equals(refusedCall) && name.equals(refused)) {
        throw new FsException(Errno.EACCES, call + " " + name);
      }
      switch (trouble) {
        case DEATH_BEFORE -> {
          if (isNow()) {
            die("before " + call + " " + name);
          }
        }
        case FAILURE_BEFORE -> {
          if (isNow()) {
            fail(call + " " + name, ERRORS);
          }
        }
        case MANY_FAILURES -> {
          if (random.nextInt(100) < 30) {
            fail(call + " " + name, ERRORS);
          }
        }
        default -> {}
      }
      log.append("    ").append(call).append(' ').append(name).append('\n');
    }

    @Override
    public synchronized void looking(FileName name) throws FsException {
      boolean isCommitters = isStepping && Thread.currentThread() == committer;
      if (isCommitters && trouble == Trouble.MANY_FAILURES && random.nextInt(100) < 5) {
        fail("a look at " + name, ERRORS);
      }
    }

    @Override
    public synchronized void after(String call, FileName name) throws FsException {
      if (trouble == Trouble.DEATH_AFTER && isNow()) {
        die("after " + call + " " + name);
      }
      if (trouble == Trouble.FAILURE_AFTER && isNow()) {
        fail("made, but " + call + " " + name, LATE_ERRORS);
      }
    }

    private void die(String what) {
      log.append("    death ").append(what).append('\n');
      isDead = true;
      throw new FakeCalls.Death();
    }

    private void fail(String what, List<Errno> errors) throws FsException {
      Errno errno = errors.get(random.nextInt(errors.size()));
      log.append("    ").append(errno).append(": ").append(what).append('\n');
      throw new FsException(errno, what);
    }
  }

  private Trouble anyTrouble() {
    return Trouble.values()[random.nextInt(Trouble.values().length)];
  }

  // ---- one after another

  @ParameterizedTest
  @MethodSource("seeds")
  void source_afterTroubles_isWhatTheMountShows(long seed) throws Exception {
    random = new Random(seed);
    Troubles troubles = new Troubles(seed + 1000);
    for (int i = 0; i < THREADS; i++) {
      programs.add(new TreeProgram("p" + i, i, random, log));
    }
    try (Driver driver = new Driver(directory)) {
      if (seed % 4 == 3) {
        driver.calls.forgetBirths();
      }
      driver.calls.watch(troubles);
      for (int i = 0; i < CHANGES; i++) {
        programs.get(random.nextInt(THREADS)).make(driver);
        if (random.nextInt(6) == 0) {
          steps(driver, troubles);
        }
        if (random.nextInt(80) == 0) {
          drain(driver, troubles);
        }
      }
      drain(driver, troubles);
    } catch (Exception | AssertionError e) {
      throw new AssertionError("seed %d:%n%s".formatted(seed, log), e);
    }
  }

  private void steps(Driver driver, Troubles troubles) throws FsException {
    log.append("steps\n");
    if (random.nextInt(10) == 0) {
      troubles.refuse(
          REFUSED_CALLS[random.nextInt(REFUSED_CALLS.length)], NAMES[random.nextInt(NAMES.length)]);
    }
    troubles.begin(anyTrouble(), random.nextInt(25));
    troubles.setStepping(true);
    try {
      if (random.nextInt(3) == 0) {
        driver.mount().tryAgain();
      }
      for (int i = random.nextInt(14); i > 0 && driver.mount().attempt(); i--) {
        driver.mount().tidy();
        log.append("-\n");
      }
    } catch (FsException e) {
      log.append("stopped: ").append(e.getMessage()).append('\n');
    } catch (FakeCalls.Death e) {
      restart(driver, troubles);
      return;
    } finally {
      troubles.setStepping(false);
    }
    if (random.nextInt(12) == 0) {
      restart(driver, troubles);
    }
  }

  /** The next process makes steps when it begins, and may die in them, too. */
  private void restart(Driver driver, Troubles troubles) throws FsException {
    while (true) {
      log.append("restart\n");
      driver.end(); // Its threads are dead, too.
      troubles.begin(anyTrouble(), random.nextInt(10));
      troubles.setStepping(true);
      try {
        driver.begin();
        troubles.begin(Trouble.NONE, 0);
        return;
      } catch (FakeCalls.Death e) {
        log.append("dead again\n");
      } finally {
        troubles.setStepping(false);
      }
    }
  }

  private void drain(Driver driver, Troubles troubles) throws FsException {
    log.append("drain\n");
    accept(driver, troubles);
    driver.drainAll();
    assertSame(driver);
  }

  /** All files are closed, and the source refuses nothing any more. */
  private void accept(Driver driver, Troubles troubles) throws FsException {
    troubles.end();
    for (TreeProgram program : programs) {
      program.close(driver);
    }
    driver.mount().retry(Driver.name(""));
  }

  private static void assertSame(Driver driver) throws FsException {
    assertThat(driver.mount().drainStatus().failures()).isEmpty();
    assertThat(driver.mount().drainStatus().waitingChanges()).isZero();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree());
    assertThat(driver.sourceLinks()).isEqualTo(driver.links());
    assertThat(driver.sourceTimes()).isEqualTo(driver.times());
    assertThat(driver.sourceDetails()).isEqualTo(driver.details());
    assertThat(driver.temporaries()).isEmpty();
  }

  // ---- at the same time

  @ParameterizedTest
  @MethodSource("threadSeeds")
  void source_afterTroublesWhileThreadsWork_isWhatTheMountShows(long seed) throws Exception {
    random = new Random(seed);
    Troubles troubles = new Troubles(seed + 1000);
    for (int i = 0; i < THREADS; i++) {
      programs.add(new TreeProgram("p" + i, i, new Random(THREADS * seed + i), log));
    }
    try (Driver driver = new Driver(directory, 2, InstantSource.system())) {
      driver.setPause(Pauses::atRandom);
      driver.restart();
      driver.calls.watch(troubles);
      for (int round = 0; round < ROUNDS; round++) {
        troubles.begin(anyTrouble(), random.nextInt(60));
        changeAtOnce(driver, troubles);
        if (troubles.isDead() || random.nextInt(3) == 0) {
          restart(driver, troubles);
        }
      }
      accept(driver, troubles);
      drainByThreads(driver);
      assertSame(driver);
    } catch (Exception | AssertionError e) {
      throw new AssertionError("seed %d:%n%s".formatted(seed, log), e);
    }
  }

  /** A drain ends with what is refused, and with what waits for that. */
  private static void drainByThreads(Driver driver) throws FsException, InterruptedException {
    for (int pass = 0; pass < PASSES && !driver.mount().drain(DRAIN_MILLIS); pass++) {
      driver.mount().tryAgain();
    }
    Await.until("what could not be tidied at once is tidy", () -> isTidy(driver));
  }

  private static boolean isTidy(Driver driver) throws FsException {
    Map<String, Instant> times = driver.times();
    synchronized (driver.calls) {
      return driver.temporaries().isEmpty() && driver.sourceTimes().equals(times);
    }
  }

  private void changeAtOnce(Driver driver, Troubles troubles) throws Exception {
    List<Future<?>> running = new ArrayList<>();
    for (TreeProgram program : programs) {
      running.add(
          threads.submit(
              () -> {
                for (int i = 0; i < CHANGES_AT_ONCE && !troubles.isDead(); i++) {
                  program.make(driver);
                }
                return null;
              }));
    }
    for (Future<?> one : running) {
      one.get();
    }
  }
}
