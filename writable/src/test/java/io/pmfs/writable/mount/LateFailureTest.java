package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.posix.Requested;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.HashSet;
import java.util.Random;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Promise: what a step has made at the source when one of its calls fails is known ever after, also
 * by the next process, and completed: no file is kept beside itself, and in the end the source has
 * what the mount shows.
 */
class LateFailureTest {
  private static final int CHANGES = 150;
  private static final int SEEDS = Requested.count("large", 300, 4);

  /** So many of 100 calls at the source fail. */
  private static final int[] FAILING = {6, 6, 20, 40};

  @TempDir Path directory;

  private final StringBuilder log = new StringBuilder();

  private static LongStream seeds(int count) {
    String one = System.getProperty("pmfs.seed");
    return one != null ? LongStream.of(Long.parseLong(one)) : LongStream.range(0, count);
  }

  static LongStream seeds() {
    return seeds(SEEDS);
  }

  static LongStream coarseSeeds() {
    return seeds(Requested.count("large", 100, 2));
  }

  /** Lets calls at the source fail while it may. */
  private final class Failing implements FakeCalls.Watcher {
    private final Random random;
    private final int percent;
    private boolean isOn = true;
    private boolean hasFailed;

    Failing(long seed) {
      percent = FAILING[(int) (seed % FAILING.length)];
      random = new Random(seed);
    }

    @Override
    public void before(String call, FileName name) throws FsException {
      boolean fails = isOn && random.nextInt(100) < percent;
      log.append(fails ? "  fails: " : "  ").append(call + " " + name + "\n");
      hasFailed |= fails;
      if (fails) {
        throw new FsException(random.nextBoolean() ? Errno.EBUSY : Errno.EIO, call + " " + name);
      }
    }
  }

  // ---- each call

  /** From one call on, all of its name fail until the process has ended. */
  private boolean failFrom(int at) throws Exception {
    int[] count = {0};
    String[] failing = {""};
    try (Driver driver = new Driver(directory.resolve("" + at), 0, InstantSource.system())) {
      driver.calls.watch(
          new FakeCalls.Watcher() {
            @Override
            public void before(String call, FileName name) throws FsException {
              if (count[0]++ == at) {
                failing[0] = call;
              }
              if (call.equals(failing[0])) {
                throw new FsException(Errno.EBUSY, call);
              }
            }
          });
      CrashTest.makeChanges(driver);
      try {
        driver.drainAll();
      } catch (FsException e) {
        assertThat(e.errno()).isEqualTo(Errno.EBUSY); // As if the source refused everything.
      }
      driver.calls.watch(new FakeCalls.Watcher() {});
      driver.restart();
      driver.append("final", "more");
      driver.chmod("d", 0711);
      assertSame(driver);
    } catch (FsException | AssertionError e) {
      throw new AssertionError("call %d, %s".formatted(at, failing[0]), e);
    }
    return count[0] > at;
  }

  @Test
  void eachCall_thatFailsUntilARestart_isMadeUpFor() throws Exception {
    int at = 4 % CrashTest.STEP;
    while (failFrom(at)) {
      at += CrashTest.STEP;
    }
    assertThat(at).isGreaterThan(50);
  }

  // ---- a removal

  /** A file is not completed, replaces another one and is removed: the other one goes, too. */
  @Test
  void fileThatWasReplaced_isRemoved_alsoIfItsRemovalFailsOnce() throws Exception {
    Set<String> failing = new HashSet<>();
    try (Driver driver = new Driver(directory, 0, InstantSource.system())) {
      driver.symlink("target", "replaced");
      driver.drainAll();
      driver.put("file", "text");
      driver.calls.watch(
          new FakeCalls.Watcher() {
            @Override
            public void before(String call, FileName name) throws FsException {
              if (failing.remove(call + " " + name)) {
                throw new FsException(Errno.EBUSY, call);
              }
            }

            @Override
            public void after(String call, FileName name) {
              if (call.equals("rename")) {
                failing.add("sync ");
                failing.add("unlink replaced");
              }
            }
          });
      driver.mount().step();
      driver.rename("file", "replaced", 0);
      driver.unlink("replaced");
      while (driver.mount().step()) {
        driver.mount().tidy();
      }
      assertSame(driver);
      assertThat(driver.sourceTree()).isEmpty();
      assertThat(failing).isEmpty();
    }
  }

  // ---- changes that are made before the first one that waits

  /** A directory that comes and goes is left out; the answer about the next one is lost. */
  private static void loseTheAnswer(Driver driver, @Nullable Error death) throws FsException {
    driver.drainAll();
    driver.mkdir("passing");
    driver.rmdir("passing");
    driver.user.set(2);
    driver.mkdir("made");
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void after(String call, FileName name) throws FsException {
            if (death != null) {
              throw death;
            }
            driver.calls.watch(new FakeCalls.Watcher() {});
            throw new FsException(Errno.EIO, call);
          }
        });
  }

  @Test
  void directoryWhoseAnswerIsLost_isOurs() throws Exception {
    try (Driver driver = new Driver(directory, 0, InstantSource.system())) {
      loseTheAnswer(driver, null);
      assertSame(driver);
    }
  }

  @Test
  void directoryWhoseAnswerIsLost_isRemoved() throws Exception {
    try (Driver driver = new Driver(directory, 0, InstantSource.system())) {
      loseTheAnswer(driver, null);
      driver.mount().step();
      driver.rmdir("made");
      assertSame(driver);
      assertThat(driver.sourceTree()).isEmpty();
    }
  }

  @Test
  void directoryOfAFormerProcess_isRemoved() throws Exception {
    try (Driver driver = new Driver(directory, 0, InstantSource.system())) {
      loseTheAnswer(driver, new FakeCalls.Death());
      assertThatThrownBy(() -> driver.mount().step()).isInstanceOf(FakeCalls.Death.class);
      driver.calls.watch(new FakeCalls.Watcher() {});
      driver.rmdir("made");
      driver.restart();
      assertSame(driver);
      assertThat(driver.sourceTree()).isEmpty();
    }
  }

  /** The process dies while it copies; the next one gets no answer when it names the copy. */
  @Test
  void fileWhoseAnswerIsLostAtAStart_isOurs() throws Exception {
    try (Driver driver = new Driver(directory, 0, InstantSource.system())) {
      driver.put("file", "text");
      driver.calls.watch(
          new FakeCalls.Watcher() {
            @Override
            public void before(String call, FileName name) {
              if (call.equals("truncate")) {
                throw new FakeCalls.Death();
              }
            }
          });
      assertThatThrownBy(() -> driver.mount().step()).isInstanceOf(FakeCalls.Death.class);
      driver.calls.watch(
          new FakeCalls.Watcher() {
            @Override
            public void after(String call, FileName name) throws FsException {
              if (call.equals("rename")) {
                driver.calls.watch(new FakeCalls.Watcher() {});
                throw new FsException(Errno.ETIMEDOUT, call);
              }
            }
          });
      driver.restart();
      assertSame(driver);
      assertThat(driver.sourceTree()).containsOnlyKeys("file");
    }
  }

  /** A directory came and went, and meanwhile something was made there that is elsewhere now. */
  @Test
  void directoryThatOthersNeed_isNotLeftOut() throws Exception {
    try (Driver driver = new Driver(directory, 0, InstantSource.system())) {
      driver.calls.watch(
          new FakeCalls.Watcher() {
            @Override
            public void before(String call, FileName name) throws FsException {
              if (name.equals(Driver.name("refused"))) {
                throw new FsException(Errno.EBUSY, call);
              }
            }
          });
      driver.mkdir("refused");
      driver.mkdir("refused/passing");
      driver.symlink("target", "refused/passing/link");
      driver.rename("refused/passing/link", "link", 0);
      while (driver.mount().step()) {
        driver.mount().tidy();
      }
      driver.rmdir("refused/passing");
      while (driver.mount().step()) {
        driver.mount().tidy();
      }
      driver.calls.watch(new FakeCalls.Watcher() {});
      assertSame(driver);
      assertThat(driver.sourceTree()).containsOnlyKeys("refused", "link");
    }
  }

  // ---- at random

  @ParameterizedTest
  @MethodSource("seeds")
  void callsThatFail_andRestarts_leaveNoConflict(long seed) throws Exception {
    changeAndDrain(seed, driver -> {});
  }

  /** The mount shows times as the source stores them. */
  @ParameterizedTest
  @MethodSource("coarseSeeds")
  void callsThatFail_atASourceWithCoarseTimes_leaveItsTimes(long seed) throws Exception {
    changeAndDrain(seed, driver -> driver.calls.setCoarse(seed % 2 == 0 ? 1 : 2));
  }

  private void changeAndDrain(long seed, Consumer<Driver> prepare) throws Exception {
    Random random = new Random(seed);
    Failing failing = new Failing(seed + 1000);
    MovingChanges changes = MovingChanges.ofAllKinds(random, log);
    try (Driver driver = new Driver(directory, 0, InstantSource.system())) {
      prepare.accept(driver);
      driver.calls.watch(failing);
      for (int i = 0; i < CHANGES; i++) {
        change(driver, changes);
        if (random.nextInt(4) == 0) {
          steps(driver, random);
        }
        if (random.nextInt(failing.hasFailed ? 3 : 40) == 0) {
          failing.hasFailed = false;
          log.append("restart\n");
          driver.restart();
        }
        if (random.nextInt(60) == 0) {
          drain(driver, failing);
        }
      }
      drain(driver, failing);
    } catch (Exception | AssertionError e) {
      throw new AssertionError("seed %d:%n%s".formatted(seed, log), e);
    }
  }

  private void change(Driver driver, MovingChanges changes) throws FsException {
    try {
      changes.make(driver);
    } catch (FsException e) {
      if (e.errno() != Errno.EBUSY && e.errno() != Errno.EIO) {
        throw e;
      }
      log.append("told: ").append(e.getMessage()).append('\n'); // By close, which has worked.
    }
  }

  private void steps(Driver driver, Random random) {
    log.append("steps\n");
    try {
      if (random.nextInt(3) == 0) {
        driver.mount().tryAgain();
      }
      for (int i = random.nextInt(12); i > 0 && driver.mount().step(); i--) {
        driver.mount().tidy();
      }
    } catch (FsException e) {
      log.append("stopped: ").append(e.getMessage()).append('\n');
    }
  }

  private void drain(Driver driver, Failing failing) throws FsException {
    log.append("drain\n");
    failing.isOn = false;
    assertSame(driver);
    failing.isOn = true;
  }

  private static void assertSame(Driver driver) throws FsException {
    driver.drainAll();
    assertThat(driver.mount().drainStatus().failures()).isEmpty();
    assertThat(driver.mount().drainStatus().waitingChanges()).isZero();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree());
    assertThat(driver.sourceTimes()).isEqualTo(driver.times());
    assertThat(driver.sourceDetails()).isEqualTo(driver.details());
    assertThat(driver.temporaries()).isEmpty();
  }
}
