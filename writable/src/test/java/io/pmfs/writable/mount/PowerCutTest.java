package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Requested;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Promise: after a power cut no change is taken for another program's. The machine dies after each
 * call that changes the source, and the tables lose all that was not synced.
 */
class PowerCutTest {
  private static final int MAX_CALLS = 1000;

  /** These take long. An odd number, as what is lost goes by the number of the call. */
  private static final int DATA_STEP = Requested.is("large") ? 1 : 15;

  @TempDir Path directory;

  private static void makeChanges(Driver driver) throws Exception {
    driver.put("log", "1,");
    driver.mkdir("m");
    driver.append("log", "2,");
    driver.rename("m", "n", 0);
    driver.append("log", "3,");
    driver.put("n/log", "other");
    CrashTest.makeChanges(driver);
    driver.append("log", "4");
  }

  private static FakeCalls.Watcher deathAfter(int at, int[] count) {
    return new FakeCalls.Watcher() {
      @Override
      public void after(String call, FileName name) {
        if (count[0]++ == at) {
          throw new FakeCalls.Death();
        }
      }
    };
  }

  /** Returns whether there were so many calls. */
  private boolean cutAfter(int at) throws Exception {
    int[] count = {0};
    try (Driver driver = new Driver(directory.resolve("cut " + at))) {
      driver.keepSynced();
      makeChanges(driver);
      Map<String, String> wanted = driver.tree();
      driver.calls.watch(deathAfter(at, count));
      try {
        driver.drainAll();
      } catch (FakeCalls.Death e) {
        driver.cut();
      }
      driver.drainAll();
      assertThat(driver.mount().drainStatus().failures()).as("call %d", at).isEmpty();
      assertThat(driver.sourceTree()).as("call %d", at).isEqualTo(wanted);
      assertThat(driver.tree()).as("call %d", at).isEqualTo(wanted);
      assertThat(driver.temporaries()).as("call %d", at).isEmpty();
    }
    return count[0] > at;
  }

  @Test
  void cut_afterAnyCall_makesNoConflict() throws Exception {
    int at = 0;
    while (cutAfter(at)) {
      at += CrashTest.STEP;
      assertThat(at).isLessThan(MAX_CALLS);
    }
    assertThat(at).isGreaterThan(100);
  }

  @Test
  void dataFileOfALostFile_isNoOtherFiles() throws Exception {
    try (Driver driver = new Driver(directory)) {
      driver.remount();
      driver.keepSynced();
      driver.put("a", "secret".repeat(10));
      driver.cut();
      Opened file = driver.create("b");
      driver.write(file, 20, "x");
      driver.close(file);
      assertThat(driver.read("b")).isEqualTo("\0".repeat(20) + "x");
      Opened open = driver.create("c");
      driver.restart();
      assertThat(driver.read(open.node().inode())).isEmpty();
    }
  }

  /** Returns whether there were so many calls. */
  private boolean loseDataAfter(int at) throws Exception {
    int[] count = {0};
    try (Driver driver = new Driver(directory.resolve("data " + at))) {
      driver.keepSynced();
      makeChanges(driver);
      driver.calls.watch(deathAfter(at, count));
      try {
        driver.drainAll();
      } catch (FakeCalls.Death e) {
        driver.cutWithData(at % 4 * 2 - 1);
      }
      driver.drainAll();
      assertThat(driver.mount().drainStatus().conflicts()).as("call %d", at).isZero();
      assertThat(driver.tree()).as("call %d", at).isEqualTo(driver.sourceTree());
    }
    return count[0] > at;
  }

  @Test
  void cut_thatLosesData_leavesMountAndSourceTheSame() throws Exception {
    int at = 0;
    while (loseDataAfter(at)) {
      at += DATA_STEP;
      assertThat(at).isLessThan(MAX_CALLS);
    }
    assertThat(at).isGreaterThan(100);
  }
}
