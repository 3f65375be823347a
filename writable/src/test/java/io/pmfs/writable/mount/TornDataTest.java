package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.DrainStatus;
import io.pmfs.writable.DrainStatus.Failure;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.NewAttributes;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Promise: of a content that was closed and not synced, a power cut may leave the first bytes or
 * nothing. The mount and the source then have the same, never zeros in the place of what is gone,
 * all other changes go on, and the user is told.
 */
class TornDataTest {
  private static final int GONE = -1;

  @TempDir Path directory;

  private Driver driver;

  @BeforeEach
  void open() throws Exception {
    driver = new Driver(directory);
  }

  @AfterEach
  void close() {
    driver.close();
  }

  /** The machine loses its power; the tables were synced. */
  private void cut(int left) throws Exception {
    driver.keepSynced();
    driver.cutWithData(left);
  }

  /** What the mount shows right after the cut, and the source in the end. */
  private void assertLeft(Map<String, String> wanted) throws Exception {
    assertThat(driver.tree()).isEqualTo(wanted);
    driver.drainAll();
    assertThat(driver.sourceTree()).isEqualTo(wanted);
    assertThat(driver.tree()).isEqualTo(wanted);
    DrainStatus status = driver.mount().drainStatus();
    assertThat(status.waitingChanges()).isZero();
    assertThat(status.dirtyBytes()).isZero();
    assertThat(status.conflicts()).isZero();
    assertThat(driver.temporaries()).isEmpty();
  }

  private void assertTold(String... paths) {
    DrainStatus status = driver.mount().drainStatus();
    assertThat(status.failures()).extracting(Failure::path).containsExactlyInAnyOrder(paths);
    assertThat(status.refused()).isEqualTo(paths.length);
  }

  @Test
  void fileThatIsGone_isEmpty() throws Exception {
    driver.put("a", "content");
    driver.put("b", "");
    cut(GONE);
    assertTold("a");
    assertLeft(Map.of("a", "file 644 ", "b", "file 644 "));
  }

  @Test
  void fileThatIsShorter_hasItsFirstBytes() throws Exception {
    driver.put("a", "0123456789");
    cut(4);
    assertTold("a");
    assertThat(driver.mount().drainStatus().failures().get(0).reason()).contains("4 of 10 bytes");
    assertLeft(Map.of("a", "file 644 0123"));
  }

  @Test
  void fileThatWasSynced_isWhole() throws Exception {
    Opened file = driver.create("a");
    driver.write(file, 0, "0123456789");
    driver.mount().fsync(file.node().inode(), file.handle(), false, driver.caller());
    driver.close(file);
    driver.put("b", "other");
    cut(GONE);
    assertTold("b");
    assertLeft(Map.of("a", "file 644 0123456789", "b", "file 644 "));
  }

  @Test
  void fileThatWasSyncedBeforeItGrew_hasWhatWasSynced() throws Exception {
    driver.put("a", "before");
    driver.drainAll();
    Opened file =
        driver.mount().open(driver.node("a").inode(), OutputCalls.O_TRUNC | 1, driver.caller());
    driver.write(file, 0, "0123");
    driver.mount().fsync(file.node().inode(), file.handle(), false, driver.caller());
    driver.write(file, 4, "456789");
    driver.close(file);
    cut(GONE);
    assertTold("a");
    assertLeft(Map.of("a", "file 644 0123"));
  }

  @Test
  void changesThatTheTablesLost_doNotShowInGaps() throws Exception {
    driver.put("a", "0123");
    driver.put("b", "0123");
    driver.put("c", "");
    driver.put("d", "");
    driver.drainAll();
    driver.put("a", "0123");
    driver.put("b", "0123");
    driver.keepSynced();
    for (String path : List.of("a", "b", "c", "d")) {
      driver.append(path, "456789");
    }
    driver.cut();
    driver.truncate("a", 8);
    driver.overwrite("b", 8, "+");
    driver.truncate("c", 8);
    driver.overwrite("d", 8, "+");
    String cut = "file 644 0123\0\0\0\0";
    String empty = "file 644 " + "\0".repeat(8);
    assertLeft(Map.of("a", cut, "b", cut + "+", "c", empty, "d", empty + "+"));
  }

  @Test
  void newContentOfWhichNothingIsLeft_leavesTheOneBefore() throws Exception {
    driver.put("a", "before");
    driver.drainAll();
    driver.put("a", "the new one");
    cut(GONE);
    assertTold("a");
    assertLeft(Map.of("a", "file 644 before"));
  }

  @Test
  void bytesThatTheSourceHas_areNotTakenFromIt() throws Exception {
    driver.put("log", "0123456789");
    driver.drainAll();
    driver.append("log", "abc");
    driver.append("log", "def");
    cut(4);
    assertTold("log");
    assertLeft(Map.of("log", "file 644 0123456789"));
    driver.append("log", "+");
    assertLeft(Map.of("log", "file 644 0123456789+"));
  }

  @Test
  void appendOfWhichSomeIsLeft_reachesTheSource() throws Exception {
    driver.put("log", "0123");
    driver.drainAll();
    driver.append("log", "456789");
    cut(6);
    assertTold("log");
    assertLeft(Map.of("log", "file 644 012345"));
    driver.append("log", "+");
    assertLeft(Map.of("log", "file 644 012345+"));
  }

  @Test
  void bytesThatWereNotTold_areNotTakenFromTheSource() throws Exception {
    driver.put("log", "0123456789");
    driver.drainAll();
    Opened file = driver.mount().open(driver.node("log").inode(), 1, driver.caller());
    driver.write(file, 10, "unclosed");
    cut(4);
    assertTold("log");
    assertLeft(Map.of("log", "file 644 0123456789"));
  }

  @Test
  void overwriteThatWasNotSynced_leavesTheContentBefore() throws Exception {
    driver.put("a", "0123456789");
    driver.put("b", "0123456789");
    driver.drainAll();
    Opened c = driver.create("c");
    driver.write(c, 0, "0123456789");
    driver.mount().fsync(c.node().inode(), c.handle(), false, driver.caller());
    driver.close(c);
    for (String path : List.of("a", "b", "c")) {
      Opened file = driver.mount().open(driver.node(path).inode(), 1, driver.caller());
      driver.write(file, path.equals("b") ? 10 : 0, "X");
      driver.write(file, 0, "X");
    }
    cut(GONE);
    assertTold("a", "b", "c");
    String whole = "file 644 0123456789";
    assertLeft(Map.of("a", whole, "b", whole, "c", whole));
  }

  @Test
  void newContentThatIsOpen_leavesTheOneBeforeIfNothingIsLeft() throws Exception {
    for (String path : List.of("a", "b", "c")) {
      driver.put(path, "before");
    }
    driver.drainAll();
    for (String path : List.of("a", "b", "c")) {
      Opened file =
          driver.mount().open(driver.node(path).inode(), OutputCalls.O_TRUNC | 1, driver.caller());
      if (path.equals("c")) {
        driver.mount().fsync(file.node().inode(), file.handle(), false, driver.caller());
      } else {
        driver.write(file, 0, path.equals("a") ? "the new" : "");
      }
    }
    cut(GONE);
    assertTold("a", "b");
    assertLeft(Map.of("a", "file 644 before", "b", "file 644 before", "c", "file 644 "));
  }

  @Test
  void fileThatIsEmptiedBeforeAnOrderlyStop_staysEmpty() throws Exception {
    driver.put("a", "before");
    driver.put("b", "before");
    driver.drainAll();
    driver.mount().open(driver.node("a").inode(), OutputCalls.O_TRUNC | 1, driver.caller());
    Opened file = driver.mount().open(driver.node("b").inode(), 1, driver.caller());
    driver.write(file, 0, "X");
    setSize(file, 0L);
    driver.reboot();
    assertTold();
    assertLeft(Map.of("a", "file 644 ", "b", "file 644 "));
  }

  private void setSize(Opened file, long size) throws FsException {
    driver
        .mount()
        .setAttributes(
            file.node().inode(),
            new NewAttributes(null, null, null, size, null, null, file.handle(), false),
            driver.caller());
  }

  /** What was synced before is not at the source. */
  @Test
  void newContentThatIsOpen_leavesTheOneBefore_evenIfAnotherWasSynced() throws Exception {
    driver.put("a", "before");
    driver.put("b", "before");
    driver.drainAll();
    for (String path : List.of("a", "b")) {
      Opened file = driver.mount().open(driver.node(path).inode(), 1, driver.caller());
      driver.write(file, 0, "synced");
      driver.mount().fsync(file.node().inode(), file.handle(), false, driver.caller());
      setSize(file, 0L);
      if (path.equals("b")) {
        driver.mount().fsync(file.node().inode(), file.handle(), false, driver.caller());
      }
      driver.write(file, 0, "the new one");
    }
    driver.calls.loseFiles(driver.places);
    cut(0);
    assertTold("a");
    assertLeft(Map.of("a", "file 644 before", "b", "file 644 "));
  }

  @Test
  void newContentThatIsOpen_hasItsFirstBytes() throws Exception {
    driver.put("a", "before");
    driver.drainAll();
    Opened file =
        driver.mount().open(driver.node("a").inode(), OutputCalls.O_TRUNC | 1, driver.caller());
    driver.write(file, 0, "the new one");
    cut(4);
    assertLeft(Map.of("a", "file 644 the "));
  }

  @Test
  void shorterContentThatIsOpen_isNotTakenForATornOne() throws Exception {
    driver.put("a", "0123456789");
    driver.put("b", "0123456789");
    driver.drainAll();
    for (String path : List.of("a", "b")) {
      Opened file = driver.mount().open(driver.node(path).inode(), 1, driver.caller());
      driver.write(file, 0, "X");
      if (path.equals("b")) {
        driver.mount().fsync(file.node().inode(), file.handle(), false, driver.caller());
      }
      setSize(file, 4L);
    }
    cut(4);
    assertLeft(Map.of("a", "file 644 X123", "b", "file 644 X123"));
  }

  @Test
  void fileThatIsEmptiedAfterTheCut_staysEmpty() throws Exception {
    driver.put("a", "before");
    driver.drainAll();
    driver.put("b", "waits");
    cut(10);
    driver.mount().open(driver.node("a").inode(), OutputCalls.O_TRUNC | 1, driver.caller());
    driver.restart();
    assertThat(driver.read("a")).isEmpty();
    driver.remount();
    assertLeft(Map.of("a", "file 644 ", "b", "file 644 waits"));
  }

  @Test
  void bytesThatWereSyncedBeforeAnOverwrite_areThere() throws Exception {
    Opened file = driver.create("a");
    driver.write(file, 0, "0123");
    driver.mount().flush(file.node().inode(), file.handle(), driver.caller());
    driver.write(file, 4, "456789");
    driver.mount().fsync(file.node().inode(), file.handle(), false, driver.caller());
    driver.write(file, 0, "X");
    cut(GONE);
    assertLeft(Map.of("a", "file 644 X123456789"));
  }

  /** The tables may be older than the removal of what they name. */
  @Test
  void bytesThatWereSyncedBeforeAnOverwrite_areThereUntilTheTablesSayOtherwise() throws Exception {
    driver.keepSynced();
    Opened file = driver.create("a");
    driver.write(file, 0, "0123456789");
    driver.mount().fsync(file.node().inode(), file.handle(), false, driver.caller());
    driver.mount().flush(file.node().inode(), file.handle(), driver.caller());
    driver.write(file, 0, "X");
    driver.drainAll();
    driver.cutWithData(GONE);
    assertThat(driver.read("a")).endsWith("123456789");
  }

  @Test
  void severalContents_leaveTheLastOfWhichSomethingIsLeft() throws Exception {
    driver.put("a", "one");
    driver.mkdir("d");
    driver.put("a", "second");
    driver.mkdir("e");
    driver.put("a", "the third");
    cut(2);
    assertTold("a");
    assertLeft(Map.of("a", "file 644 th", "d", "dir 755", "e", "dir 755"));
  }

  @Test
  void severalContentsThatAreGone_leaveAnEmptyFile() throws Exception {
    driver.put("a", "one");
    driver.mkdir("d");
    driver.put("a", "second");
    driver.chmod("a", 0600);
    driver.link("a", "b");
    cut(GONE);
    assertTold("a");
    assertLeft(Map.of("a", "file 600 ", "b", "file 600 ", "d", "dir 755"));
  }

  @Test
  void contentBehindARename_hasWhatIsLeft() throws Exception {
    driver.put("final", "of before");
    driver.drainAll();
    driver.put("tmp", "checkpoint");
    driver.rename("tmp", "final", 0);
    cut(5);
    assertTold("final");
    assertLeft(Map.of("final", "file 644 check"));
  }

  @Test
  void fileThatIsRemoved_isNotMissed() throws Exception {
    driver.put("a", "content");
    driver.mkdir("d");
    driver.unlink("a");
    driver.put("b", "content");
    driver.mkdir("e");
    driver.unlink("b");
    cut(GONE);
    assertTold();
    assertLeft(Map.of("d", "dir 755", "e", "dir 755"));
  }

  @Test
  void changesAfterTheCut_beginWithWhatIsLeft() throws Exception {
    driver.put("a", "0123456789");
    driver.put("b", "0123456789");
    cut(4);
    driver.overwrite("a", 0, "abc");
    driver.append("b", "+");
    assertLeft(Map.of("a", "file 644 abc3", "b", "file 644 0123+"));
  }

  @Test
  void sourceThatIsAway_doesNotKeepTheMountFromBeginning() throws Exception {
    driver.put("a", "0123456789");
    driver.calls.setAway(new FsException(Errno.EHOSTDOWN, "away"));
    cut(4);
    assertTold("a");
    driver.calls.setAway(null);
    assertLeft(Map.of("a", "file 644 0123"));
  }

  @Test
  void anotherStart_tellsOfTheLossOnce() throws Exception {
    driver.put("a", "0123456789");
    cut(4);
    driver.restart();
    assertTold("a");
    driver.mount().acknowledge();
    driver.remount();
    assertTold();
    assertLeft(Map.of("a", "file 644 0123"));
  }

  @Test
  void lossThatTheUserKnows_isNotToldAfterAnotherCut() throws Exception {
    driver.put("a", "0123456789");
    cut(4);
    assertTold("a");
    driver.drainAll();
    driver.mount().acknowledge();
    driver.cut();
    assertTold();
  }

  @Test
  void dataThatVanishWhileTheMountIsInUse_doNotStopTheOtherChanges() throws Exception {
    driver.put("a", "0123456789");
    driver.put("b", "other");
    driver.tearFiles(GONE);
    driver.drainAll();
    assertTold("a", "b");
    assertThat(driver.tree()).isEqualTo(driver.sourceTree());
    assertThat(driver.sourceTree()).isEqualTo(Map.of("a", "file 644 ", "b", "file 644 "));
  }

  @Test
  void dataThatVanishWhileTheMountIsInUse_areNotReplacedByZeros() throws Exception {
    driver.put("a", "0123456789");
    driver.tearFiles(4);
    assertThatThrownBy(() -> driver.overwrite("a", 0, "X")).hasMessageContaining("EIO");
    driver.drainAll();
    assertTold("a");
    assertThat(driver.sourceTree()).isEqualTo(Map.of("a", "file 644 0123"));
  }

  @Test
  void diskThatIsNotMounted_isNoLoss() throws Exception {
    driver.put("a", "content");
    driver.setDisk(false);
    assertThatThrownBy(() -> driver.remount())
        .isInstanceOf(FsException.class)
        .hasMessageContaining("is its disk mounted?");
    driver.setDisk(true);
    driver.remount();
    assertLeft(Map.of("a", "file 644 content"));
  }

  /** Its directory could not be made, so nothing is missing there later. */
  @Test
  void diskThatWasFullFromTheStart_isNotMissed() throws Exception {
    driver.calls.setRefusing(driver.places, Errno.ENOSPC);
    driver.create("new");
    driver.calls.setRefusing(driver.places, null);
    driver.remount();
    assertLeft(Map.of("new", "file 644 "));
    driver.put("new", "content");
    assertLeft(Map.of("new", "file 644 content"));
  }

  @Test
  void diskThatIsNotMounted_isNoLossOfFilesThatWereOpen() throws Exception {
    driver.create("empty");
    driver.remount();
    driver.write(driver.create("a"), 0, "content");
    driver.setDisk(false);
    assertThatThrownBy(() -> driver.remount())
        .isInstanceOf(FsException.class)
        .hasMessageContaining("is its disk mounted?");
    driver.setDisk(true);
    driver.remount();
    assertLeft(Map.of("a", "file 644 content", "empty", "file 644 "));
  }

  @Test
  void diskThatIsNotMounted_isNotMissedByFilesWithoutAName() throws Exception {
    driver.put("b", "content");
    driver.drainAll();
    driver.write(
        driver.mount().createUnnamed(WritableFileSystem.ROOT, 0600, 2, driver.caller()),
        0,
        "content");
    driver.write(driver.create("a"), 0, "content");
    driver.unlink("a");
    driver.append("b", ", longer");
    driver.unlink("b");
    driver.setDisk(false);
    driver.remount();
    assertTold();
    assertLeft(Map.of());
  }
}
