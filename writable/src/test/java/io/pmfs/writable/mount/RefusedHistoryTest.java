package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.posix.Requested;
import io.pmfs.writable.DrainStatus.Failure;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.file.Path;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Promise: what the source refuses, for a while or until the user asks again, keeps nothing else
 * back and is lost in no order. Random calls at the source are refused for random names, with
 * restarts and deaths in between; no file at the source ever has other bytes than the mount had
 * under some name, and once nothing is refused the source is what the mount shows.
 */
@Timeout(60)
class RefusedHistoryTest {
  private static final int CHANGES = 150;
  private static final List<String> CALLS =
      List.of("mkdir", "rename", "unlink", "rmdir", "link", "symlink", "open", "write", "truncate");
  private static final List<Errno> ERRORS =
      List.of(Errno.ENOSPC, Errno.EDQUOT, Errno.EACCES, Errno.EPERM, Errno.EFBIG, Errno.ESTALE);

  private static final int SEEDS = Requested.count("large", 600, 12);

  static LongStream seeds() {
    String one = System.getProperty("pmfs.seed");
    return one == null ? LongStream.rangeClosed(1, SEEDS) : LongStream.of(Long.parseLong(one));
  }

  @TempDir Path directory;

  private final RandomChanges changes = new RandomChanges();
  private final Set<String> contents = new HashSet<>();
  private String refusedCall = "";
  private Errno errno = Errno.EIO;
  private int refusedName;
  private int callsToLive = -1;
  private boolean isForbidden;

  private void watch(Driver driver, long seed) {
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals(refusedCall) && (name.hashCode() & 3) == refusedName) {
              changes.log.append("refused " + call + " " + name + " " + errno + "\n");
              isForbidden |= errno == Errno.EACCES || errno == Errno.EPERM;
              throw new FsException(errno, call + " " + name);
            }
            if (callsToLive >= 0 && callsToLive-- == 0) {
              changes.log.append("death\n");
              throw new FakeCalls.Death();
            }
          }

          @Override
          public void after(String call, FileName name) {
            changes.log.append("  " + call + " " + name + "\n");
            check(driver, seed, call);
          }
        });
  }

  private void check(Driver driver, long seed, String call) {
    if (isForbidden) {
      return; // A file whose directory may not be changed is written in its place.
    }
    for (Map.Entry<String, String> entry : driver.sourceTree().entrySet()) {
      String text = entry.getValue();
      if (text.startsWith("file") && contents.stream().noneMatch(one -> isPart(text, one))) {
        throw new AssertionError(
            "seed %d: after %s, %s is %s at the source, which no file was; changes:%n%s"
                .formatted(seed, call, entry.getKey(), text, changes.log));
      }
    }
  }

  private static String bytes(String text) {
    return text.replaceFirst("file \\d+ ?", "");
  }

  /** A file that is appended to may be between two versions. */
  private static boolean isPart(String there, String whole) {
    return whole.startsWith(bytes(there));
  }

  private void remember(Driver driver) throws FsException {
    driver.tree().values().forEach(text -> contents.add(bytes(text)));
  }

  @ParameterizedTest
  @MethodSource("seeds")
  void source_thatRefusesAtRandom_hasEverythingInTheEnd(long seed) throws Exception {
    Random random = new Random(seed);
    contents.add("");
    try (Driver driver = new Driver(directory)) {
      watch(driver, seed);
      for (int i = 0; i < CHANGES; i++) {
        make(driver, random);
        remember(driver);
        if (random.nextInt(6) == 0) {
          refusedCall = random.nextInt(3) == 0 ? "" : CALLS.get(random.nextInt(CALLS.size()));
          errno = ERRORS.get(random.nextInt(ERRORS.size()));
          refusedName = random.nextInt(4);
        }
        if (random.nextInt(4) == 0) {
          callsToLive = random.nextInt(4) == 0 ? random.nextInt(40) : -1;
          steps(driver, random);
          callsToLive = -1;
        }
      }
      refusedCall = "";
      for (String path : List.copyOf(changes.open.keySet())) {
        closeToldOf(driver, Objects.requireNonNull(changes.open.remove(path)));
        remember(driver);
      }
      driver.mount().retry(FileName.of(""));
      driver.drainAll();
      String log = "seed %d: %s".formatted(seed, changes.log);
      assertThat(driver.sourceTree()).as(log).isEqualTo(driver.tree());
      assertThat(driver.temporaries()).as(log).isEmpty();
      assertThat(driver.mount().drainStatus().failures())
          .as(log)
          .allMatch(RefusedHistoryTest::isForGood);
      assertThat(driver.mount().drainStatus().waitingChanges()).as(log).isZero();
      assertThat(driver.mount().drainStatus().dirtyBytes()).as(log).isZero();
    }
  }

  /** What is not tried again by itself, and told once: modes, names of one file. */
  private static boolean isForGood(Failure failure) {
    return failure.reason().startsWith("given up: ")
        || failure.reason().equals("the source does not allow replacing this name");
  }

  /** A close tells what the source has said. */
  private void make(Driver driver, Random random) throws FsException {
    try {
      changes.make(driver, random);
    } catch (FsException e) {
      assertThat(e).hasMessageContaining("the source: ");
    }
  }

  private static void closeToldOf(Driver driver, Opened file) throws FsException {
    try {
      driver.close(file);
    } catch (FsException e) {
      assertThat(e).hasMessageContaining("the source: ");
    }
  }

  private void steps(Driver driver, Random random) throws FsException {
    try {
      if (random.nextBoolean()) {
        driver.mount().tryAgain();
      }
      for (int steps = random.nextInt(30); steps > 0 && driver.mount().step(); steps--) {
        driver.mount().tidy();
      }
    } catch (FakeCalls.Death e) {
      driver.restart();
    }
  }
}
