package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.posix.Requested;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Promise: every step to the source can be made twice. The process dies, or the source fails, once
 * at each call that changes the source; afterwards everything is there as if nothing had happened.
 */
class CrashTest {
  private static final int MAX_CALLS = 500;

  /** From one call that is tried to the next; each test begins with another one. */
  static final int STEP = Requested.is("large") ? 1 : 9;

  @TempDir Path directory;

  /** What happens at one call. */
  private interface Blow {
    void fall() throws FsException;
  }

  /** Every kind of change, with something else in between, so that none is left out. */
  static void makeChanges(Driver driver) throws FsException {
    driver.mkdir("d");
    driver.put("d/a", "one");
    driver.symlink("d/a", "l");
    driver.append("d/a", "two");
    driver.mkdir("e");
    driver.link("d/a", "e/hard");
    driver.link("d/a", "again");
    driver.put("e/hard", "of three names");
    driver.put("tmp", "checkpoint 1");
    driver.rename("tmp", "final", 0);
    driver.put("tmp", "checkpoint 2");
    driver.chmod("d", 0700);
    driver.rename("tmp", "final", 0);
    driver.put("x", "left");
    driver.put("y", "right");
    driver.rename("x", "y", OutputCalls.RENAME_EXCHANGE);
    driver.unlink("d/a");
    driver.rename("e", "d/e", 0);
    driver.overwrite("y", 1, "---");
    driver.mkdir("f");
    driver.chmod("x", 0600);
    driver.rmdir("f");
    driver.truncate("final", 4);
    Opened unclosed = driver.create("g");
    driver.write(unclosed, 0, "open");
    driver.rename("g", "h", 0);
    driver.write(unclosed, 4, "closed");
    driver.close(unclosed);
    driver
        .mount()
        .setExtendedAttribute(
            driver.node("h").inode(), Driver.name("user.a"), new byte[] {1}, 0, driver.caller());
    driver.unlink("l");
  }

  private static void drain(Driver driver, boolean isRetry) throws FsException {
    for (int attempt = 0; ; attempt++) {
      try {
        driver.drainAll();
        return;
      } catch (FakeCalls.Death e) {
        driver.restart();
      } catch (FsException e) {
        if (!isRetry || attempt > 2) {
          throw e;
        }
      }
    }
  }

  /** Lets something happen once, at one of the calls; returns whether there were so many. */
  private boolean runWith(int at, boolean isBefore, boolean isCoarse, Blow blow) throws Exception {
    int[] count = {0};
    try (Driver driver = new Driver(directory.resolve(at + " " + isBefore))) {
      if (isCoarse) {
        driver.calls.setCoarse();
      }
      driver.calls.watch(
          new FakeCalls.Watcher() {
            @Override
            public void before(String call, FileName name) throws FsException {
              if (isBefore && count[0]++ == at) {
                blow.fall();
              }
            }

            @Override
            public void after(String call, FileName name) {
              if (!isBefore && count[0]++ == at) {
                throw new FakeCalls.Death();
              }
            }
          });
      makeChanges(driver);
      Map<String, String> wanted = driver.tree();
      drain(driver, true);
      assertThat(driver.sourceTree()).as("call %d", at).isEqualTo(wanted);
      assertThat(driver.tree()).as("call %d", at).isEqualTo(wanted);
      assertThat(driver.temporaries()).as("call %d", at).isEmpty();
      assertThat(driver.mount().drainStatus().failures()).as("call %d", at).isEmpty();
      assertThat(driver.mount().drainStatus().waitingChanges()).isZero();
    }
    return count[0] > at;
  }

  private void runAtEach(int first, boolean isBefore, boolean isCoarse, Blow blow)
      throws Exception {
    int at = first % STEP;
    while (runWith(at, isBefore, isCoarse, blow)) {
      at += STEP;
      assertThat(at).isLessThan(MAX_CALLS);
    }
    assertThat(at).isGreaterThan(50);
  }

  @Test
  void death_beforeAnyCall_doesNoHarm() throws Exception {
    runAtEach(
        0,
        true,
        false,
        () -> {
          throw new FakeCalls.Death();
        });
  }

  @Test
  void death_afterAnyCall_doesNoHarm() throws Exception {
    runAtEach(1, false, false, () -> {});
  }

  /** Lustre keeps times in whole seconds. */
  @Test
  void death_afterAnyCall_atASourceWithCoarseTimes_doesNoHarm() throws Exception {
    runAtEach(3, false, true, () -> {});
  }

  @Test
  void failure_ofAnyCall_isTriedAgain() throws Exception {
    runAtEach(
        2,
        true,
        false,
        () -> {
          throw new FsException(Errno.EIO, "injected");
        });
  }

  /** The process dies once after a call with this name, and after that no such call is made. */
  private static void dieAfter(Driver driver, String last, String never) throws FsException {
    boolean[] isDead = {false};
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) {
            assertThat(isDead[0] && call.equals(never)).as("%s %s", call, name).isFalse();
          }

          @Override
          public void after(String call, FileName name) {
            if (!isDead[0] && call.equals(last)) {
              isDead[0] = true;
              throw new FakeCalls.Death();
            }
          }
        });
    assertThatThrownBy(driver::drainAll).isInstanceOf(FakeCalls.Death.class);
    driver.restart();
  }

  private static void assertSame(Driver driver) throws FsException {
    driver.drainAll();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree());
    assertThat(driver.sourceTimes()).isEqualTo(driver.times());
    assertThat(driver.mount().drainStatus().failures()).isEmpty();
  }

  /** The step that stood for all of them is made again, and not the first of them. */
  @Test
  void changesThatCameToNothing_beforeAnExchangeThatWasMade_areNotMade() throws Exception {
    try (Driver driver = new Driver(directory)) {
      driver.mkdir("x");
      driver.mkdir("y");
      driver.drainAll();
      driver.mkdir("x/e");
      driver.rmdir("x/e");
      driver.rename("x", "y", OutputCalls.RENAME_EXCHANGE);
      dieAfter(driver, "rename", "mkdir");
      assertSame(driver);
    }
  }

  @Test
  void directoryThatWasMade_andIsRemovedBeforeThatIsRecorded_goes() throws Exception {
    try (Driver driver = new Driver(directory)) {
      driver.mkdir("d");
      dieAfter(driver, "mkdir", "none");
      driver.rmdir("d");
      assertSame(driver);
    }
  }

  @Test
  void fileThatWasMade_andIsRemovedBeforeThatIsRecorded_goes() throws Exception {
    try (Driver driver = new Driver(directory)) {
      driver.put("f", "x");
      dieAfter(driver, "rename", "none");
      driver.unlink("f");
      assertSame(driver);
    }
  }

  /** The mount looks at the source only where the source has what it takes it to have. */
  private static void useMoved(Driver driver) throws FsException {
    assertThat(driver.read("e/f")).isEqualTo("below");
    driver.put("e/f", "another");
    driver.put("e/new", "x");
    driver.mkdir("d");
    driver.put("d/other", "y");
    assertSame(driver);
    assertThat(driver.mount().drainStatus().conflicts()).isZero();
  }

  private static void prepareMove(Driver driver) throws FsException {
    driver.mkdir("d");
    driver.put("d/f", "below");
    driver.drainAll();
    driver.rename("d", "e", 0);
    driver.put("beside", "z");
  }

  @Test
  void renameThatWasMade_andFailedThen_isRecorded() throws Exception {
    try (Driver driver = new Driver(directory)) {
      prepareMove(driver);
      boolean[] isMade = {false};
      driver.calls.watch(
          new FakeCalls.Watcher() {
            @Override
            public void before(String call, FileName name) throws FsException {
              if (isMade[0] && !call.equals("rename")) {
                isMade[0] = false;
                throw new FsException(Errno.EBUSY, "injected");
              }
            }

            @Override
            public void after(String call, FileName name) {
              isMade[0] = call.equals("rename");
            }
          });
      driver.mount().step();
      driver.mount().step();
      driver.calls.watch(new FakeCalls.Watcher() {});
      driver.remount();
      useMoved(driver);
    }
  }

  @Test
  void renameThatWaited_andWasMadeByAProcessThatDied_isRecorded() throws Exception {
    try (Driver driver = new Driver(directory)) {
      prepareMove(driver);
      driver.calls.watch(
          new FakeCalls.Watcher() {
            @Override
            public void before(String call, FileName name) throws FsException {
              if (call.equals("rename")) {
                throw new FsException(Errno.EBUSY, "injected");
              }
            }
          });
      driver.mount().step();
      dieAfter(driver, "rename", "none");
      driver.remount();
      useMoved(driver);
    }
  }

  private static void putAs(Driver driver, int user, String path, String text) throws FsException {
    driver.user.set(user);
    driver.put(path, text);
    driver.user.set(0);
  }

  /**
   * Makes changes until a directory was renamed, below which another user's files do not fit.
   *
   * @param isDeath whether the process dies after the rename; if not, it does not learn of it
   */
  private static void renameAboveRefused(Driver driver, boolean isDeath) throws FsException {
    driver.mkdir("d");
    driver.drainAll();
    boolean[] isMade = {false};
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals("write")) {
              throw new FsException(Errno.ENOSPC, call);
            }
          }

          @Override
          public void looking(FileName name) throws FsException {
            if (isMade[0]) {
              throw new FsException(Errno.EBUSY, "a look at " + name);
            }
          }

          @Override
          public void after(String call, FileName name) throws FsException {
            isMade[0] |= call.equals("rename");
            if (isMade[0] && isDeath) {
              throw new FakeCalls.Death();
            }
          }
        });
    putAs(driver, 1, "d/one", "below");
    putAs(driver, 1, "d/two", "below");
    driver.drainAll();
    assertThat(driver.mount().drainStatus().refused()).isEqualTo(2);
    driver.rename("d", "e", 0);
    assertThatThrownBy(driver::drainAll)
        .isInstanceOf(isDeath ? FakeCalls.Death.class : FsException.class);
    assertThat(driver.sourceTree()).containsOnlyKeys("e");
    driver.calls.watch(new FakeCalls.Watcher() {});
  }

  private static void assertSameWithoutConflict(Driver driver) throws FsException {
    assertSame(driver);
    assertThat(driver.mount().drainStatus().conflicts()).isZero();
    assertThat(driver.sourceTree()).containsOnlyKeys("e", "e/one", "e/two");
  }

  /** What waits below the directory is not tried before the tables know where that is. */
  @Test
  void renameOfADirectory_thatWasMade_isRecordedBeforeAnythingBelowIsTried() throws Exception {
    try (Driver driver = new Driver(directory)) {
      renameAboveRefused(driver, true);
      driver.restart();
      assertSameWithoutConflict(driver);
    }
  }

  @Test
  void renameOfADirectory_thatWasMade_isRecordedOnceTheSourceAnswers() throws Exception {
    try (Driver driver = new Driver(directory)) {
      renameAboveRefused(driver, true);
      driver.calls.setAway(new FsException(Errno.EHOSTDOWN, "away"));
      driver.restart();
      driver.calls.setAway(null);
      assertSameWithoutConflict(driver);
    }
  }

  @Test
  void renameOfADirectory_whoseResultIsNotSeen_isRecordedBeforeAnythingBelowIsTried()
      throws Exception {
    try (Driver driver = new Driver(directory)) {
      renameAboveRefused(driver, false);
      assertSameWithoutConflict(driver);
    }
  }
}
