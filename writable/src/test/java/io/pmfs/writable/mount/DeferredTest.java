package io.pmfs.writable.mount;

import static java.util.concurrent.TimeUnit.SECONDS;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What waits for a refused change, what does not, and what makes it void. */
class DeferredTest {
  private static final int OTHER_USER = 7;

  @TempDir Path directory;

  private Driver driver;
  private long unique = 1_000_000;

  @BeforeEach
  void open() throws Exception {
    driver = new Driver(directory);
    driver.put("old", "checkpoint");
    driver.mkdir("d");
    driver.drainAll();
  }

  @AfterEach
  void close() {
    driver.close();
  }

  private interface Choice {
    boolean isRefused(String call, FileName name);
  }

  private void refuse(Errno errno, Choice choice) {
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (choice.isRefused(call, name)) {
              throw new FsException(errno, call + " " + name);
            }
          }
        });
  }

  private void refuseWrites(Errno errno) {
    refuse(errno, (call, name) -> call.equals("write"));
  }

  private void accept() {
    driver.calls.watch(new FakeCalls.Watcher() {});
  }

  private void renameAs(int uid, String from, String to) throws FsException {
    unique += 2;
    driver
        .mount()
        .rename(1, Driver.name(from), 1, Driver.name(to), 0, new Caller(unique, uid, 0, 1));
  }

  @Test
  void rename_waitsForWhatItsUserWrites() throws Exception {
    driver.put("index.tmp", "");
    driver.put("other.tmp", "");
    driver.drainAll();
    refuseWrites(Errno.ENOSPC);
    driver.put("part", "content");
    renameAs(0, "index.tmp", "index");
    renameAs(OTHER_USER, "other.tmp", "other");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsKeys("index.tmp", "other").doesNotContainKey("index");
    accept();
    driver.drainAll();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree()).containsKeys("part", "index");
  }

  @Test
  void rename_doesNotWaitForWhatWasSetAside() throws Exception {
    driver.put("index.tmp", "");
    driver.drainAll();
    refuseWrites(Errno.EFBIG);
    driver.put("part", "content");
    renameAs(0, "index.tmp", "index");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsKey("index").doesNotContainKey("part");
  }

  @Test
  void removal_ofWhatDidNotFit_leavesNothing() throws Exception {
    refuseWrites(Errno.ENOSPC);
    driver.put("large", "content");
    driver.drainAll();
    assertThat(driver.mount().drainStatus().refused()).isOne();
    driver.unlink("large");
    driver.unlink("old");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsOnlyKeys("d");
    assertThat(driver.mount().drain(0)).isTrue();
    assertThat(driver.mount().drainStatus().dirtyBytes()).isZero();
    assertThat(driver.temporaries()).isEmpty();
  }

  /** A file that was written under another name, and replaced one that is at the source. */
  @Test
  void removal_afterARename_removesWhatWasReplaced() throws Exception {
    refuseWrites(Errno.ENOSPC);
    driver.put("tmp", "content");
    driver.rename("tmp", "old", 0);
    driver.unlink("old");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsOnlyKeys("d");
    assertThat(driver.mount().drain(0)).isTrue();
  }

  /** The second removal looks at the source for the content of the open file. */
  @Test
  @Timeout(60)
  void removal_afterARename_ofAFileThatIsOpenAndOnlyAtTheSource_removesBoth() throws Exception {
    driver.calls.makeAtSource("open", "content");
    Opened file =
        driver.mount().open(driver.node("open").inode(), OutputCalls.O_RDONLY, driver.caller());
    refuseWrites(Errno.ENOSPC);
    driver.put("part", "content");
    driver.rename("old", "open", 0);
    driver.drainAll();
    assertThat(driver.sourceTree()).containsOnlyKeys("d", "old", "open");
    driver.unlink("open");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsOnlyKeys("d");
    assertThat(driver.read(file.node().inode())).isEqualTo("content");
  }

  @Test
  void laterContent_takesThePlaceOfOneThatDidNotFit() throws Exception {
    refuse(Errno.EFBIG, (call, name) -> call.equals("truncate"));
    driver.put("log", "much too long");
    driver.drainAll();
    assertThat(driver.mount().drainStatus().refused()).isOne();
    accept();
    // The close tells what the source said to the version before.
    assertThatThrownBy(() -> driver.put("log", "short")).hasMessageContaining("EFBIG");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("log", "file 644 short");
    assertThat(driver.mount().drain(0)).isTrue();
  }

  @Test
  void directoryThatIsRefused_holdsWhatIsInIt_andGoesWithIt() throws Exception {
    refuse(Errno.EACCES, (call, name) -> call.equals("mkdir"));
    driver.mkdir("n");
    driver.mkdir("n/m");
    driver.put("n/m/file", "content");
    driver.put("d/free", "content");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsKey("d/free").doesNotContainKey("n");
    assertThat(driver.mount().drainStatus().failures())
        .singleElement()
        .satisfies(failure -> assertThat(failure.behind()).isEqualTo(2));
    driver.unlink("n/m/file");
    driver.rmdir("n/m");
    driver.rmdir("n");
    driver.drainAll();
    assertThat(driver.mount().drain(0)).isTrue();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree());
  }

  @Test
  void fileOfADroppedDirectory_goesToo() throws Exception {
    refuse(Errno.EACCES, (call, name) -> call.equals("mkdir"));
    driver.mkdir("n");
    driver.put("n/file", "content");
    driver.drainAll();
    assertThat(driver.mount().drop(Driver.name("n"))).containsExactly("n", "n/file");
    assertThat(driver.tree()).containsOnlyKeys("d", "old");
    accept();
    driver.mkdir("n");
    driver.put("n/file", "again");
    driver.drainAll();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree()).containsKey("n/file");
  }

  @Test
  void droppedRename_showsTheOldNamesAgain() throws Exception {
    driver.put("other", "two");
    driver.drainAll();
    refuse(Errno.EINVAL, (call, name) -> call.equals("rename"));
    driver.rename("old", "other", 0);
    driver.drainAll();
    assertThat(driver.tree()).doesNotContainKey("old");
    driver.mount().drop(Driver.name("other"));
    assertThat(driver.tree())
        .isEqualTo(driver.sourceTree())
        .containsEntry("old", "file 644 checkpoint")
        .containsEntry("other", "file 644 two");
  }

  private void assertBusy(String path) {
    assertThatThrownBy(() -> driver.mount().drop(Driver.name(path)))
        .isInstanceOfSatisfying(
            FsException.class, failure -> assertThat(failure.errno()).isEqualTo(Errno.EBUSY));
  }

  /** A link in a directory that is given up, to a file whose content waits for itself. */
  @Test
  void drop_ofALink_isRefused_whileAnotherChangeOfTheFileWaits() throws Exception {
    refuse(Errno.ENOSPC, (call, name) -> call.equals("write") || call.equals("mkdir"));
    driver.put("old", "new and longer");
    driver.mkdir("n");
    driver.link("old", "n/l");
    driver.drainAll();
    assertBusy("n");
    assertThat(driver.tree()).containsEntry("old", "file 644 new and longer");
    accept();
    driver.drainAll();
    assertThat(driver.tree()).isEqualTo(driver.sourceTree()).containsKeys("old", "n/l");
  }

  @Test
  void drop_ofARename_isRefused_whileItsNameWasFreedByAChangeThatWaits() throws Exception {
    refuse(Errno.EACCES, (call, name) -> call.equals("mkdir") || call.equals("unlink"));
    driver.mkdir("n");
    driver.put("n/new", "content");
    driver.unlink("old");
    driver.rename("n/new", "old", 0);
    driver.drainAll();
    assertBusy("n");
    assertThat(driver.tree()).containsEntry("old", "file 644 content");
    assertThat(driver.mount().drop(Driver.name(""))).contains("n", "n/new", "old");
    assertThat(driver.tree()).isEqualTo(driver.sourceTree()).containsOnlyKeys("d", "old");
  }

  @Test
  void fileThatMovedIntoADroppedDirectory_goesToo() throws Exception {
    refuse(Errno.EACCES, (call, name) -> call.equals("write") || call.equals("mkdir"));
    driver.put("x", "content");
    driver.mkdir("n");
    driver.rename("x", "n/x", 0);
    driver.drainAll();
    assertThat(driver.mount().drop(Driver.name("n"))).containsExactly("x", "n/x", "n");
    accept();
    driver.drainAll();
    assertThat(driver.tree()).isEqualTo(driver.sourceTree()).containsOnlyKeys("d", "old");
    assertThat(driver.mount().drain(0)).isTrue();
  }

  /** Both the new file and the one that it replaced have contents that wait. */
  @Test
  void drop_ofAFileThatReplacedOne_dropsBothContents() throws Exception {
    refuseWrites(Errno.EFBIG);
    driver.put("old", "new");
    driver.put("tmp", "content");
    driver.rename("tmp", "old", 0);
    driver.drainAll();
    driver.mount().drop(Driver.name("old"));
    assertThat(driver.tree()).isEqualTo(driver.sourceTree()).containsOnlyKeys("d", "old");
    assertThat(driver.mount().drain(0)).isTrue();
  }

  /** Names without an encoding look alike in messages. */
  @Test
  void drop_ofAName_takesItsBytes() throws Exception {
    refuseWrites(Errno.EFBIG);
    FileName one = FileName.ofLatin1("M\u00fcller");
    FileName other = FileName.ofLatin1("M\u00f6ller");
    for (FileName name : List.of(one, other)) {
      Opened file = driver.mount().create(1, name, 0644, OutputCalls.O_WRONLY, driver.caller());
      driver.write(file, 0, name.toLatin1());
      driver.close(file);
    }
    driver.drainAll();
    assertThat(driver.mount().drop(Driver.name(one.toString()))).isEmpty();
    assertThat(driver.mount().drop(one)).hasSize(1);
    assertThat(driver.mount().lookup(1, one)).isNull();
    assertThat(driver.mount().lookup(1, other)).isNotNull();
    assertThat(driver.mount().drainStatus().refused()).isOne();
  }

  @Test
  void drop_ofADirectory_isRefused_whileANewFileInItIsOpen() throws Exception {
    refuse(Errno.EACCES, (call, name) -> call.equals("mkdir"));
    driver.mkdir("n");
    driver.drainAll();
    Opened file = driver.create("n/f");
    assertBusy("n");
    driver.close(file);
    driver.drainAll();
    assertThat(driver.mount().drop(Driver.name("n"))).containsExactly("n", "n/f");
    assertThat(driver.tree()).isEqualTo(driver.sourceTree());
  }

  @Test
  void drop_ofARemoval_isRefused_whileANewFileOfTheNameIsOpen() throws Exception {
    refuse(Errno.EACCES, (call, name) -> call.equals("unlink"));
    driver.unlink("old");
    driver.drainAll();
    Opened file = driver.create("old");
    driver.write(file, 0, "new");
    assertBusy("old");
    assertThat(driver.node("old").inode()).isEqualTo(file.node().inode());
    driver.close(file);
    driver.drainAll();
    driver.mount().drop(Driver.name("old"));
    assertThat(driver.tree()).isEqualTo(driver.sourceTree());
  }

  @Test
  void change_thatIsJustBeingRetried_isNotDropped() throws Exception {
    refuseWrites(Errno.EFBIG);
    driver.put("new", "content");
    driver.drainAll();
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) {
            if (call.equals("write")) {
              CompletableFuture.runAsync(() -> assertBusy("new")).orTimeout(10, SECONDS).join();
            }
          }
        });
    driver.mount().retry(Driver.name("new"));
    driver.drainAll();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree()).containsKey("new");
  }

  @Test
  void change_ofAFileThatIsBeingWritten_isNotDropped() throws Exception {
    refuse(Errno.EACCES, (call, name) -> call.equals("chmod"));
    driver.chmod("old", 0600);
    driver.drainAll();
    Opened file =
        driver.mount().open(driver.node("old").inode(), OutputCalls.O_WRONLY, driver.caller());
    driver.write(file, 0, "CHECK");
    assertBusy("old");
    accept();
    assertThatThrownBy(() -> driver.close(file)).hasMessageContaining("chmod");
    driver.mount().retry(Driver.name(""));
    driver.drainAll();
    assertThat(driver.sourceTree())
        .isEqualTo(driver.tree())
        .containsEntry("old", "file 600 CHECKpoint");
  }

  @Test
  void drop_ofSeveralChanges_dropsAllOrNone() throws Exception {
    refuse(Errno.EACCES, (call, name) -> call.equals("mkdir") || call.equals("chmod"));
    driver.mkdir("n");
    driver.chmod("old", 0600);
    driver.drainAll();
    Opened file =
        driver.mount().open(driver.node("old").inode(), OutputCalls.O_WRONLY, driver.caller());
    assertBusy("");
    assertThat(driver.tree()).containsKey("n");
    assertThatThrownBy(() -> driver.close(file)).hasMessageContaining("chmod");
    assertThat(driver.mount().drop(Driver.name(""))).containsExactly("n", "old");
    assertThat(driver.tree()).isEqualTo(driver.sourceTree()).containsOnlyKeys("d", "old");
  }

  @Test
  void retry_ofAPath_triesOnlyWhatIsThere() throws Exception {
    refuse(Errno.EACCES, (call, name) -> call.equals("mkdir"));
    driver.mkdir("a");
    driver.mkdir("b");
    driver.drainAll();
    accept();
    assertThat(driver.mount().retry(Driver.name("a"))).containsExactly("a");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsKey("a").doesNotContainKey("b");
  }

  private void retry(int times) {
    for (int i = 0; i < times; i++) {
      driver.mount().tryAgain();
      try {
        driver.mount().attempt();
      } catch (FsException e) {
        assertThat(e.errno()).isEqualTo(Errno.EBUSY);
      }
    }
  }

  @Test
  void changeThatWasRetriedOften_doesNotMakeTheNextOneHoldUpAll() throws Exception {
    refuse(Errno.EBUSY, (call, name) -> call.equals("mkdir"));
    driver.mkdir("a");
    retry(50);
    driver.mkdir("b");
    driver.put("free", "content");
    retry(50);
    assertThat(driver.sourceTree()).containsKey("free").doesNotContainKeys("a", "b");
    accept();
    driver.drainAll();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree()).containsKeys("a", "b");
  }

  @Test
  void manyRefusedChanges_holdUpNothing_whileTheSourceAnswers() throws Exception {
    refuse(Errno.EBUSY, (call, name) -> call.equals("mkdir"));
    for (int i = 0; i < 20; i++) {
      driver.mkdir("n" + i);
    }
    driver.put("free", "content");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsKey("free");
  }

  @Test
  void passOverManyRefusedChanges_letsOthersThroughBetween() throws Exception {
    refuse(Errno.ENOSPC, (call, name) -> call.equals("mkdir"));
    for (int i = 0; i < 100; i++) {
      driver.mkdir("n" + i);
    }
    driver.drainAll();
    driver.put("d/free", "content");
    driver.mount().tryAgain();
    for (int i = 0; i < 3; i++) {
      driver.mount().attempt();
    }
    assertThat(driver.sourceTree()).containsKey("d/free");
  }

  // ---- links

  private void refuseLinks() {
    refuse(Errno.EPERM, (call, name) -> call.equals("link"));
  }

  private void assertRenamed() throws Exception {
    assertThat(driver.sourceTree())
        .isEqualTo(driver.tree())
        .containsEntry("final", "file 644 checkpoint")
        .doesNotContainKey("old");
    assertThat(driver.mount().drain(0)).isTrue();
  }

  /** As git and maildir do: the name that is removed may be the only one at the source. */
  @Test
  void link_thatTheSourceCannotMake_isARename_ifTheOldNameIsRemoved() throws Exception {
    refuseLinks();
    driver.link("old", "final");
    driver.unlink("old");
    driver.drainAll();
    assertRenamed();
  }

  @Test
  void link_thatWasSetAside_isARename_onceTheOldNameIsRemoved() throws Exception {
    refuseLinks();
    driver.link("old", "final");
    driver.drainAll();
    assertThat(driver.mount().drainStatus().refused()).isOne();
    driver.restart();
    driver.unlink("old");
    driver.drainAll();
    assertRenamed();
  }

  @Test
  void link_thatIsARename_isOneForTheNextProcess_too() throws Exception {
    driver.link("old", "final");
    driver.unlink("old");
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void after(String call, FileName name) {
            throw new FakeCalls.Death();
          }
        });
    assertThatThrownBy(driver::drainAll).isInstanceOf(FakeCalls.Death.class);
    accept();
    driver.restart();
    assertThat(driver.tree()).containsEntry("final", "file 644 checkpoint");
    driver.drainAll();
    assertRenamed();
  }

  /** The names change their times; the directory is not synced until the next process. */
  @Test
  void link_thatIsARename_isCompletedByTheNextProcess() throws Exception {
    refuse(Errno.EBUSY, (call, name) -> call.equals("sync"));
    driver.link("old", "final");
    driver.unlink("old");
    driver.drainAll();
    assertThat(driver.mount().drain(0)).isFalse();
    accept();
    driver.restart();
    driver.drainAll();
    assertRenamed();
    driver.calls.sourceRoot().children.remove(Driver.name("final"));
    driver.restart();
    assertThat(driver.tree()).containsOnlyKeys("d");
  }

  @Test
  void secondLink_thatTheSourceCannotMake_keepsTheOldNameThere() throws Exception {
    refuseLinks();
    driver.link("old", "one");
    driver.link("old", "two");
    driver.unlink("old");
    driver.put("free", "");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsOnlyKeys("d", "old", "free");
    assertThat(driver.tree()).containsEntry("one", "file 644 checkpoint");
    accept();
    driver.mount().retry(Driver.name(""));
    driver.drainAll();
    assertThat(driver.sourceTree())
        .isEqualTo(driver.tree())
        .containsOnlyKeys("d", "free", "one", "two");
    assertThat(driver.sourceLinks()).isEqualTo(driver.links());
  }

  /** Users may not link files of others (protected_hardlinks). */
  @Test
  void link_thatItsUserMayNotMake_isMadeByTheDaemon() throws Exception {
    AtomicInteger calls = new AtomicInteger();
    refuse(Errno.EPERM, (call, name) -> call.equals("link") && calls.getAndIncrement() == 0);
    driver.link("old", "final");
    driver.drainAll();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree()).containsKeys("old", "final");
    assertThat(driver.mount().drain(0)).isTrue();
  }

  /** A file moves between file systems of the source, which the mount could not know. */
  @Test
  void rename_betweenProjects_isACopyAndARemoval() throws Exception {
    driver.rename("old", "d/moved", 0);
    driver.calls.watch(
        new FakeCalls.Watcher() {
          private boolean isFirst = true;

          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals("rename") && isFirst) {
              isFirst = false;
              throw new FsException(Errno.EXDEV, call);
            }
          }
        });
    driver.drainAll();
    assertThat(driver.sourceTree())
        .isEqualTo(driver.tree())
        .containsEntry("d/moved", "file 644 checkpoint")
        .doesNotContainKey("old");
    assertThat(driver.temporaries()).isEmpty();
  }

  /** The copy may last long, and nothing moves meanwhile. */
  @Test
  void rename_betweenProjects_letsOthersLookAtTheSourceWhileItCopies() throws Exception {
    AtomicInteger looks = lookDuringCopies();
    driver.rename("old", "d/moved", 0);
    AtomicInteger renames = new AtomicInteger();
    refuse(Errno.EXDEV, (call, name) -> call.equals("rename") && renames.getAndIncrement() == 0);
    driver.drainAll();
    assertThat(looks.get()).isPositive();
    assertThat(driver.sourceTree()).containsKey("d/moved").doesNotContainKey("old");
  }

  /** Nobody may change the directory, so the file is written in place. */
  @Test
  void overwriting_afterARefusedRename_letsOthersLookAtTheSource() throws Exception {
    AtomicInteger looks = lookDuringCopies();
    driver.put("old", "new");
    refuse(Errno.EACCES, (call, name) -> call.equals("rename"));
    driver.drainAll();
    assertThat(looks.get()).isPositive();
    assertThat(driver.sourceTree()).containsEntry("old", "file 644 new");
  }

  /** From now on, another thread looks at the source when bytes are written there. */
  private AtomicInteger lookDuringCopies() throws FsException {
    Thread committer = Thread.currentThread();
    AtomicInteger looks = new AtomicInteger();
    driver.setPause(
        call -> {
          if (call.equals("write") && Thread.currentThread() == committer) {
            CompletableFuture.runAsync(this::look).orTimeout(10, SECONDS).join();
            looks.incrementAndGet();
          }
        });
    driver.calls.makeAtSource("other", "text");
    driver.restart();
    return looks;
  }

  private void look() {
    try {
      assertThat(driver.read("other")).isEqualTo("text");
    } catch (FsException e) {
      throw new IllegalStateException(e);
    }
  }

  /** The copy has its name, but the old file is not removed yet. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void rename_betweenProjects_doesNotRemoveWhatAnotherProgramChangedMeanwhile(boolean isRefused)
      throws Exception {
    driver.rename("old", "d/moved", 0);
    int root = driver.calls.openRoot(Driver.SOURCE);
    driver.calls.watch(
        new FakeCalls.Watcher() {
          private int renames;

          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals("rename") && renames++ == 0) {
              throw new FsException(Errno.EXDEV, call);
            }
            if (call.equals("sync") && renames == 2) {
              renames++;
              write(root, "old", "another program's");
              if (isRefused) {
                throw new FsException(Errno.EDQUOT, call);
              }
            }
          }
        });
    driver.drainAll();
    assertThat(driver.sourceTree())
        .isEqualTo(driver.tree())
        .containsEntry("old", "file 644 another program's")
        .containsEntry("d/moved", "file 644 checkpoint");
    assertThat(driver.mount().drainStatus().conflicts()).isOne();
  }

  /** No rename between the projects is possible, and what came meanwhile is kept. */
  @ParameterizedTest
  @ValueSource(strings = {"before", "meanwhile", "new"})
  void rename_betweenProjects_keepsWhatAnotherProgramWroteUnderItsName(String when)
      throws Exception {
    if (!when.equals("new")) {
      driver.put("d/there", "replaced");
      driver.drainAll();
    }
    driver.rename("old", "d/there", 0);
    int d = driver.calls.openDirectory(driver.calls.openRoot(Driver.SOURCE), Driver.name("d"));
    if (when.equals("before")) {
      write(d, "there", "another program's");
    }
    setApart("d");
    driver.calls.watch(
        new FakeCalls.Watcher() {
          private boolean isWritten = when.equals("before");

          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals("write") && !isWritten) {
              isWritten = true;
              write(d, "there", "another program's");
            }
          }
        });
    driver.drainAll();
    assertThat(driver.sourceTree())
        .isEqualTo(driver.tree())
        .containsEntry("d/there", "file 644 another program's")
        .containsEntry("d/there.pmfs-conflict-node1-1", "file 644 checkpoint")
        .hasSize(3);
    assertThat(driver.mount().drainStatus().conflicts()).isOne();
    assertThat(driver.mount().drainStatus().refused()).isZero();
    assertThat(driver.temporaries()).isEmpty();
  }

  /** The old file cannot be removed at first, also for the next process. */
  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void rename_betweenProjects_isCopiedBesideOnce(boolean isRestarted) throws Exception {
    driver.put("d/there", "replaced");
    driver.drainAll();
    driver.rename("old", "d/there", 0);
    int d = driver.calls.openDirectory(driver.calls.openRoot(Driver.SOURCE), Driver.name("d"));
    write(d, "there", "another program's");
    setApart("d");
    refuse(Errno.EACCES, (call, name) -> call.equals("unlink") && name.equals(Driver.name("old")));
    driver.drainAll();
    assertThat(driver.mount().drainStatus().refused()).isOne();
    accept();
    if (isRestarted) {
      driver.restart();
    }
    driver.mount().retry(Driver.name(""));
    driver.drainAll();
    assertThat(driver.sourceTree())
        .isEqualTo(driver.tree())
        .containsOnlyKeys("d", "d/there", "d/there.pmfs-conflict-node1-1");
  }

  /** The process dies when the old file was removed. */
  @Test
  void rename_betweenProjects_thatWasCopiedBeside_isFoundByTheNextProcess() throws Exception {
    driver.put("d/there", "replaced");
    driver.drainAll();
    driver.rename("old", "d/there", 0);
    int d = driver.calls.openDirectory(driver.calls.openRoot(Driver.SOURCE), Driver.name("d"));
    write(d, "there", "another program's");
    setApart("d");
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void after(String call, FileName name) {
            if (call.equals("unlink") && name.equals(Driver.name("old"))) {
              throw new FakeCalls.Death();
            }
          }
        });
    assertThatThrownBy(driver::drainAll).isInstanceOf(FakeCalls.Death.class);
    accept();
    driver.restart();
    driver.drainAll();
    assertThat(driver.sourceTree())
        .isEqualTo(driver.tree())
        .containsOnlyKeys("d", "d/there", "d/there.pmfs-conflict-node1-1");
    assertThat(driver.mount().drainStatus().conflicts()).isOne();
  }

  private void setApart(String name) {
    Objects.requireNonNull(driver.calls.sourceRoot().children.get(Driver.name(name))).isApart =
        true;
  }

  /** Another program changes a file of the source. */
  private void write(int directory, String name, String text) throws FsException {
    int flags = OutputCalls.O_CREAT | OutputCalls.O_WRONLY;
    int file = driver.calls.open(directory, Driver.name(name), flags, 0644);
    driver.calls.write(file, Driver.bytes(text), 0);
    driver.calls.close(file);
  }

  /** The name stays as the mount has it until the source does. */
  @Test
  void file_thatCameAndWent_underANameWhoseRemovalIsSetAside_doesNotShowTheOldOne()
      throws Exception {
    refuse(Errno.EACCES, (call, name) -> call.equals("unlink"));
    driver.unlink("old");
    driver.drainAll();
    driver.put("old", "new");
    driver.drainAll();
    driver.unlink("old");
    driver.drainAll();
    assertThat(driver.tree()).containsOnlyKeys("d");
    accept();
    driver.mount().retry(Driver.name(""));
    driver.drainAll();
    assertThat(driver.sourceTree()).containsOnlyKeys("d");
    driver.calls.makeAtSource("old", "another program's");
    driver.restart();
    assertThat(driver.tree()).containsEntry("old", "file 644 another program's");
  }

  @Test
  void directory_whoseTimesDidNotFit_getsThem() throws Exception {
    refuse(Errno.ENOSPC, (call, name) -> call.equals("utimes"));
    driver.mkdir("e");
    driver.unlink("old");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsOnlyKeys("d", "e");
    accept();
    driver.drainAll();
    assertThat(driver.sourceTimes()).isEqualTo(driver.times());
    assertThat(driver.mount().drain(0)).isTrue();
  }

  @Test
  void rename_fromADirectoryThatMayNotBeSeen_holdsUpNothingAfterARestart() throws Exception {
    driver.put("d/f", "content");
    driver.drainAll();
    driver.rename("d/f", "f", 0);
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void looking(FileName name) throws FsException {
            if (name.equals(Driver.name("d"))) {
              throw new FsException(Errno.EACCES, "a look at " + name);
            }
          }
        });
    driver.drainAll();
    assertThat(driver.mount().drainStatus().refused()).isOne();
    driver.restart();
    driver.mkdir("e");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsKeys("e", "d/f");
    accept();
    driver.mount().retry(Driver.name(""));
    driver.drainAll();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree()).containsKey("f");
  }
}
