package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem.Opened;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Instant;
import java.time.InstantSource;
import java.util.Arrays;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A tier's disk takes nothing more, whatever its settings say: files go on elsewhere. */
@Timeout(60)
final class FullTierTest {
  @TempDir Path directory;
  private Driver driver;

  @BeforeEach
  void open() throws FsException {
    driver = new Driver(directory);
    driver.setHasOthers();
    driver.remount();
  }

  @AfterEach
  void close() {
    driver.close();
  }

  /** With one tier, and a committer: who waits for the source must not wait for ever. */
  private void openWithOneTier() throws FsException {
    driver.close();
    driver = new Driver(directory.resolve("one"), 2, InstantSource.system());
  }

  private void refuse(@Nullable Errno errno) {
    driver.calls.setRefusing(driver.places, errno);
  }

  private void assertDrained() throws FsException {
    driver.drainAll();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree());
  }

  @Test
  @SuppressWarnings("try")
  void tier_isAddedAfterBillionsOfFiles() throws Exception {
    openWithOneTier();
    driver.end();
    try (State state = driver.openState();
        State.Held held = state.hold()) {
      State.Update update = state.update();
      byte[] next = "next".getBytes(StandardCharsets.US_ASCII);
      update.put(Tables.FACTS, next, Tables.key(1L << 32));
      update.commit();
    }
    driver.setHasOthers();
    driver.begin();
    refuse(Errno.ENOSPC);
    driver.put("a", "content");
    assertThat(driver.calls.fileCount(driver.others)).isEqualTo(1);
    assertDrained();
  }

  @ParameterizedTest
  @EnumSource(names = {"ENOSPC", "EDQUOT", "EIO", "EROFS", "EFBIG"})
  void newFile_goesToTheNextTier(Errno errno) throws Exception {
    refuse(errno);
    driver.put("a", "content");
    assertThat(driver.read("a")).isEqualTo("content");
    assertThat(driver.calls.fileCount(driver.places)).isZero();
    assertThat(driver.calls.fileCount(driver.others)).isEqualTo(1);
    driver.restart();
    assertThat(driver.read("a")).isEqualTo("content");
    assertDrained();
  }

  @ParameterizedTest
  @EnumSource(names = {"ENOSPC", "EDQUOT", "EIO", "EROFS", "EFBIG"})
  void fileBeingWritten_goesOnInTheNextTier(Errno errno) throws Exception {
    Opened file = driver.create("a");
    driver.write(file, 0, "0123456789");
    refuse(errno);
    driver.write(file, 10, "abcdefghij");
    driver.write(file, 5, "-----");
    assertThat(driver.read("a")).isEqualTo("01234-----abcdefghij");
    assertThat(driver.calls.fileCount(driver.others)).isEqualTo(1);
    driver.close(file);
    driver.restart();
    assertThat(driver.read("a")).isEqualTo("01234-----abcdefghij");
    assertDrained();
    assertThat(driver.sourceTree()).containsEntry("a", "file 644 01234-----abcdefghij");
  }

  @Test
  void syncedFile_thatGoesOnInTheNextTier_survivesAPowerCut() throws Exception {
    driver.keepSynced();
    Opened file = driver.create("a");
    driver.write(file, 0, "0123456789");
    driver.mount().fsync(file.node().inode(), file.handle(), false, driver.caller());
    refuse(Errno.ENOSPC);
    driver.write(file, 10, "abcdefghij");
    driver.mount().tidy();
    driver.calls.tearFiles(driver.others, -1);
    driver.cut();
    assertThat(driver.read("a")).startsWith("0123456789");
    assertDrained();
  }

  @Test
  void syncedFile_whoseNextTierCannotSync_goesOnAtTheSource() throws Exception {
    Opened file = driver.create("a");
    driver.write(file, 0, "0123456789");
    driver.mount().fsync(file.node().inode(), file.handle(), false, driver.caller());
    refuse(Errno.ENOSPC);
    driver.calls.setUnsyncable(driver.others);
    driver.write(file, 10, "abcdefghij");
    driver.close(file);
    assertDrained();
    assertThat(driver.sourceTree()).containsEntry("a", "file 644 0123456789abcdefghij");
  }

  @Test
  void syncedFile_whoseNextVersionFindsNoTierThatSyncs_goesOnAtTheSource() throws Exception {
    Opened file = driver.create("a");
    driver.write(file, 0, "0123456789");
    driver.mount().fsync(file.node().inode(), file.handle(), false, driver.caller());
    driver.mount().flush(file.node().inode(), file.handle(), driver.caller());
    driver.write(file, 10, "+");
    refuse(Errno.ENOSPC);
    driver.calls.setUnsyncable(driver.others);
    writeWhileTheSourceGetsWhatWaits(() -> driver.write(file, 0, "X"));
    driver.close(file);
    assertDrained();
    assertThat(driver.sourceTree()).containsEntry("a", "file 644 X123456789+");
  }

  @Test
  void fileThatMovesBack_isNotTakenForItsFormerCopy() throws Exception {
    driver.close();
    AtomicLong later = new AtomicLong();
    InstantSource clock = () -> Instant.now().plusSeconds(later.get());
    driver = new Driver(directory.resolve("later"), 0, clock);
    driver.setHasOthers();
    driver.remount();
    Opened file = driver.create("a");
    driver.write(file, 0, "0123456789");
    refuse(Errno.EROFS);
    driver.write(file, 10, "abcdefghij");
    driver.mount().tidy();
    assertThat(driver.calls.fileCount(driver.places)).isOne();
    refuse(null);
    driver.calls.setRefusing(driver.others, Errno.ENOSPC);
    later.set(11); // Until then, a disk that failed is not used.
    driver.write(file, 20, "+");
    driver.close(file);
    driver.mount().tidy();
    assertThat(driver.calls.fileCount(driver.others)).isZero();
    driver.remount();
    driver.mount().tidy();
    assertThat(driver.read("a")).isEqualTo("0123456789abcdefghij+");
    assertDrained();
  }

  @Test
  void announcedFile_keepsWhatItPromised_andGoesOnInTheNextTier() throws Exception {
    driver.put("a", "first version");
    driver.put("b", "first of b");
    refuse(Errno.ENOSPC);
    driver.append("a", ", longer");
    driver.overwrite("b", 0, "other");
    assertThat(driver.read("a")).isEqualTo("first version, longer");
    assertThat(driver.read("b")).isEqualTo("other of b");
    assertThat(driver.mount().step()).isTrue();
    assertDrained();
    assertThat(driver.sourceTree())
        .containsEntry("a", "file 644 first version, longer")
        .containsEntry("b", "file 644 other of b");
    driver.mount().tidy();
    assertThat(driver.calls.fileCount(driver.places)).isZero();
  }

  @Test
  void fileOfTheSource_isCopiedToTheNextTier() throws Exception {
    driver.put("a", "of the source");
    driver.drainAll();
    driver.reboot();
    refuse(Errno.ENOSPC);
    driver.overwrite("a", 3, "OUR");
    assertThat(driver.read("a")).isEqualTo("of OUR source");
    assertDrained();
    driver.mount().tidy();
    assertThat(driver.calls.fileCount(driver.places)).isZero();
  }

  @Test
  void sizesAndRoom_areChangedInTheNextTier() throws Exception {
    driver.put("a", "0123456789");
    driver.put("b", "0123456789");
    Opened c = driver.create("c");
    refuse(Errno.ENOSPC);
    driver.truncate("a", 4);
    driver.truncate("b", 12);
    driver.mount().allocate(c.node().inode(), c.handle(), 0, 0, 5, driver.caller());
    driver.close(c);
    assertThat(driver.read("a")).isEqualTo("0123");
    assertThat(driver.read("b")).isEqualTo("0123456789\0\0");
    assertThat(driver.read("c")).isEqualTo("\0".repeat(5));
    assertDrained();
  }

  @Test
  void whatNeedsNoRoom_isDone() throws Exception {
    driver.put("a", "data");
    driver.put("b", "data");
    driver.put("c", "data");
    driver.put("emptied", "data");
    refuse(Errno.ENOSPC);
    driver.calls.setRefusing(driver.others, Errno.ENOSPC);
    driver.unlink("a");
    driver.truncate("b", 0);
    driver.put("emptied", "");
    driver.chmod("c", 0600);
    driver.put("empty", "");
    driver.chmod("empty", 0600);
    driver.rename("empty", "moved", 0);
    driver.mkdir("d");
    assertThat(driver.read("moved")).isEmpty();
    assertDrained();
    driver.mount().tidy();
    assertThat(driver.sourceTree().keySet()).containsExactly("b", "c", "d", "emptied", "moved");
  }

  @Test
  void append_thatIsRefusedHalfway_isThereOnce() throws Exception {
    driver.put("a", "");
    driver.append("a", "0123456789");
    driver.drainAll();
    refuse(Errno.ENOSPC);
    driver.calls.setRefusing(driver.others, Errno.ENOSPC);
    driver.calls.setRefusing(Driver.SOURCE, Errno.ENOSPC);
    assertThatThrownBy(() -> driver.append("a", "abcdefghij")).hasMessageContaining("ENOSPC");
    refuse(null);
    driver.append("a", "abcdefghij");
    assertThat(driver.read("a")).isEqualTo("0123456789abcdefghij");
  }

  @Test
  void onlyTier_letsWritersGoOnAtTheSource() throws Exception {
    openWithOneTier();
    driver.put("old", "0123456789");
    Opened file = driver.create("a");
    driver.write(file, 0, "0123456789");
    refuse(Errno.EDQUOT);
    driver.write(file, 10, "abcdefghij");
    driver.put("b", "new");
    driver.append("old", "more");
    assertThat(driver.read("a")).isEqualTo("0123456789abcdefghij");
    driver.close(file);
    assertThat(driver.mount().drain(10_000)).isTrue();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree());
    driver.mount().tidy();
    assertThat(driver.calls.fileCount(driver.places)).isZero();
  }

  /** The content of a file is at the source before its rename: it is no room until then. */
  @Test
  void onlyTier_hasRoomAgain_onceTheSourceHasTheRenameOfAFile() throws Exception {
    driver.close();
    driver = new Driver(directory.resolve("one"));
    driver.setCapacity(5000);
    driver.remount();
    driver.put("tmp", "0".repeat(4500));
    driver.rename("tmp", "final", 0);
    assertThat(driver.mount().step()).isTrue();
    assertThat(driver.sourceTree()).containsOnlyKeys("tmp");
    writeWhileTheSourceGetsWhatWaits(() -> driver.put("new", "text"));
    assertThat(driver.temporaries()).isEmpty();
    assertThat(driver.calls.fileCount(driver.places)).isOne();
    assertDrained();
  }

  /** The committer takes the last name from the source while the writer waits for room. */
  @Test
  void onlyTier_tooSmallForAFileThatWasRemoved_losesNothingOfIt() throws Exception {
    driver.close();
    driver = new Driver(directory.resolve("one"));
    driver.setCapacity(5000);
    driver.remount();
    String content = "0".repeat(6000);
    driver.calls.makeAtSource("large", content);
    Opened file =
        driver.mount().open(driver.node("large").inode(), OutputCalls.O_RDWR, driver.caller());
    driver.unlink("large");
    writeWhileTheSourceGetsWhatWaits(() -> driver.write(file, 0, "1"));
    assertThat(driver.sourceTree()).isEmpty();
    assertThat(driver.read(file.node().inode())).isEqualTo("1" + content.substring(1));
  }

  private interface Write {
    void make() throws FsException;
  }

  /** A write begins to wait for room before the committer makes a step. */
  private void writeWhileTheSourceGetsWhatWaits(Write write) throws Exception {
    FutureTask<Void> writing =
        new FutureTask<>(
            () -> {
              write.make();
              return null;
            });
    Thread writer = new Thread(writing);
    writer.start();
    Await.until("it waits for the source", () -> isWaiting(writer));
    while (!writing.isDone()) {
      driver.mount().step();
    }
    writing.get();
  }

  private static boolean isWaiting(Thread thread) {
    return thread.getState() == Thread.State.TIMED_WAITING
        && Arrays.stream(thread.getStackTrace())
            .anyMatch(frame -> frame.getMethodName().equals("awaitChange"));
  }

  @Test
  void fullTierAndFullSource_areTold() throws Exception {
    refuse(Errno.ENOSPC);
    driver.calls.setRefusing(driver.others, Errno.EIO);
    driver.calls.setRefusing(Driver.SOURCE, Errno.ENOSPC);
    Opened file = driver.create("a");
    assertThatThrownBy(() -> driver.write(file, 0, "data"))
        .isInstanceOf(FsException.class)
        .hasMessageContaining("ENOSPC");
    driver.calls.setRefusing(Driver.SOURCE, null);
    driver.write(file, 0, "data");
    driver.close(file);
    assertDrained();
  }

  @Test
  void tierWithRoomAgain_isUsed() throws Exception {
    refuse(Errno.ENOSPC);
    driver.put("a", "a");
    refuse(null);
    Thread.sleep(1100);
    driver.put("b", "b");
    assertThat(driver.calls.fileCount(driver.places)).isEqualTo(1);
    assertDrained();
  }

  @Test
  void onlyTier_thatFails_isNotWaitedFor() throws Exception {
    openWithOneTier();
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals("rename")) {
              throw new FsException(Errno.EIO, "refused");
            }
          }
        });
    driver.put("old", "0123456789");
    refuse(Errno.EIO);
    driver.put("a", "new");
    assertThat(driver.read("a")).isEqualTo("new");
    assertThat(driver.mount().drainStatus().waitingChanges()).isEqualTo(2);
    driver.calls.watch(new FakeCalls.Watcher() {});
    assertThat(driver.mount().drain(10_000)).isTrue();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree());
  }

  @Test
  void drainedFile_onADiskThatFails_isReadFromTheSource() throws Exception {
    driver.put("a", "content");
    driver.drainAll();
    driver.put("b", "waits");
    driver.calls.setUnreadable(driver.places);
    assertThat(driver.read("a")).isEqualTo("content");
    assertThatThrownBy(() -> driver.read("b")).hasMessageContaining("EIO");
    driver.calls.setUnreadable(null);
    assertDrained();
  }

  // ---- a directory that others remove

  @Test
  void drainedFile_whoseDataFileIsGone_isReadFromTheSource() throws Exception {
    driver.put("a", "content");
    driver.drainAll();
    driver.calls.removeAll(driver.places);
    driver.restart();
    assertThat(driver.read("a")).isEqualTo("content");
    driver.append("a", " and more");
    assertDrained();
    assertThat(driver.sourceTree()).containsEntry("a", "file 644 content and more");
  }

  @Test
  void newFiles_afterTheDirectoryIsGone_areWrittenThereAgain() throws Exception {
    driver.put("a", "content");
    driver.drainAll();
    driver.calls.removeAll(driver.places);
    for (int i = 0; i < 70; i++) {
      driver.put("f" + i, "content " + i);
    }
    assertThat(driver.read("f5")).isEqualTo("content 5");
    assertThat(driver.calls.fileCount(driver.places)).isPositive();
    assertDrained();
  }

  @Test
  void waitingFile_whoseDataFileIsGone_isNamedAndLost() throws Exception {
    driver.put("before", "b");
    driver.put("a", "content");
    driver.put("after", "c");
    driver.calls.removeAll(driver.places);
    driver.restart();
    assertThatThrownBy(() -> driver.read("a")).hasMessageContaining("EIO");
    driver.put("b", "goes on");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("b", "file 644 goes on");
    assertThat(driver.mount().drainStatus().failures())
        .anySatisfy(
            failure -> {
              assertThat(failure.path()).isEqualTo("a");
              assertThat(failure.reason()).contains("another program").doesNotContain("machine");
            });
  }

  /** The source keeps data itself: of that, nothing is left there in the end. */
  @Test
  void dataAtTheSource_leaveNothingThere() throws Exception {
    driver.setCapacity(0);
    driver.calls.setRefusing(driver.others, Errno.ENOSPC);
    driver.put("a", "before");
    driver.drainAll();
    refuse(Errno.ENOSPC);
    Opened file = driver.create("b");
    driver.write(file, 0, "at the source");
    assertThat(driver.temporaries()).hasSize(1);
    driver.restart();
    assertThat(driver.read("b")).isEqualTo("at the source");
    driver.close(file);
    assertDrained();
    assertThat(driver.temporaries()).isEmpty();
    assertThat(driver.sourceTimes()).isEqualTo(driver.times());
    driver.put("c", "again");
    assertThat(driver.temporaries()).hasSize(1);
    assertDrained();
    assertThat(driver.temporaries()).isEmpty();
    assertThat(driver.sourceTimes()).isEqualTo(driver.times());
  }

  @Test
  void emptyFile_thatCouldNotBeWritten_leavesNothingAtTheSource() throws Exception {
    refuse(Errno.ENOSPC);
    driver.calls.setRefusing(driver.others, Errno.ENOSPC);
    Opened file = driver.create("a");
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals("write")) {
              throw new FsException(Errno.ESTALE, call);
            }
          }
        });
    assertThatThrownBy(() -> driver.write(file, 0, "text")).hasMessageContaining("ESTALE");
    assertThat(driver.temporaries()).hasSize(1);
    driver.calls.watch(new FakeCalls.Watcher() {});
    driver.close(file);
    assertDrained();
    assertThat(driver.sourceTree()).containsEntry("a", "file 644 ");
    assertThat(driver.temporaries()).isEmpty();
    driver.append("a", "text");
    assertDrained();
    assertThat(driver.sourceTree()).containsEntry("a", "file 644 text");
    assertThat(driver.temporaries()).isEmpty();
  }

  @Test
  void dataDirectoryOfAFormerProcess_goes() throws Exception {
    refuse(Errno.ENOSPC);
    driver.calls.setRefusing(driver.others, Errno.ENOSPC);
    driver.put("a", "x");
    driver.mount().step();
    assertThat(driver.temporaries()).hasSize(1);
    driver.restart();
    long end = System.nanoTime() + 10_000_000_000L;
    while (!driver.temporaries().isEmpty() && System.nanoTime() - end < 0) {
      driver.mount().tidy();
    }
    assertThat(driver.temporaries()).isEmpty();
  }
}
