package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem;
import java.nio.file.Path;
import java.time.Instant;
import java.time.InstantSource;
import java.util.HashSet;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Promise: another program's file is never taken for pmfs's own, whatever its size and times are;
 * and what a dead process brought to the source is.
 */
class OwnFilesTest {
  private static final Instant TIME = Instant.ofEpochSecond(499_162_500);

  private static final int AFTER_A_CALL = 2;

  @TempDir Path directory;

  private Driver driver;

  @BeforeEach
  void open() throws Exception {
    driver = new Driver(directory);
    driver.put("before", "old!");
    setTimes("before");
    driver.drainAll();
  }

  @AfterEach
  void close() {
    driver.close();
  }

  /** Another program makes or changes a file, with the time that each version has. */
  private void other(String path, String text) throws FsException {
    int root = driver.calls.openRoot(Driver.SOURCE);
    int flags = OutputCalls.O_CREAT | OutputCalls.O_WRONLY;
    int file = driver.calls.open(root, Driver.name(path), flags, 0644);
    driver.calls.write(file, Driver.bytes(text), 0);
    driver.calls.truncate(file, text.length());
    driver.calls.setTimes(file, TIME, TIME);
    driver.calls.close(file);
    driver.calls.close(root);
  }

  private long numberAtSource(String name) {
    return Objects.requireNonNull(driver.calls.sourceRoot().children.get(Driver.name(name))).number;
  }

  private void setTimes(String path) throws FsException {
    driver
        .mount()
        .setAttributes(
            driver.node(path).inode(),
            new WritableFileSystem.NewAttributes(null, null, null, null, TIME, TIME, 0, false),
            driver.caller());
  }

  private void put(String path, String text) throws FsException {
    driver.put(path, text);
    setTimes(path);
  }

  @Test
  void newFile_thatAnotherProgramMadeWithEqualSizeAndTime_isKeptBeside() throws Exception {
    put("a", "ours");
    other("a", "them");
    driver.drainAll();
    assertThat(driver.sourceTree())
        .containsEntry("a", "file 644 them")
        .containsEntry("a.pmfs-conflict-node1-1", "file 644 ours");
    assertThat(driver.mount().drainStatus().conflicts()).isOne();
  }

  /** Another program removes a file that changes here, and makes one that gets its number. */
  @Test
  void numberOfARemovedFile_staysWithTheFileThatHasItNow() throws Exception {
    long before = numberAtSource("before");
    driver.append("before", " and new");
    int root = driver.calls.openRoot(Driver.SOURCE);
    driver.calls.unlink(root, Driver.name("before"));
    driver.calls.close(root);
    other("theirs", "them");
    assertThat(numberAtSource("theirs")).isEqualTo(before);
    // A listing that took long is used for longer.
    Await.until("the mount sees it", () -> driver.find("theirs") != null);
    long number = driver.node("theirs").inode();
    driver.drainAll();
    driver.put("theirs", "ours");
    assertThat(driver.node("theirs").inode()).isEqualTo(number);
    assertThat(driver.read("theirs")).isEqualTo("ours");
    driver.drainAll();
    assertThat(driver.sourceTree())
        .containsEntry("before", "file 644 old! and new")
        .containsEntry("theirs", "file 644 ours");
  }

  @Test
  void changeWhoseTimeWasSetBack_isNotOverwritten() throws Exception {
    driver.overwrite("before", 0, "ours");
    other("before", "them");
    driver.drainAll();
    assertThat(driver.sourceTree())
        .containsEntry("before", "file 644 them")
        .containsEntry("before.pmfs-conflict-node1-1", "file 644 ours");
  }

  @Test
  void changeWhoseTimeWasSetBack_isNotRemoved() throws Exception {
    driver.unlink("before");
    other("before", "them");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("before", "file 644 them");
    assertThat(driver.mount().drainStatus().conflicts()).isOne();
  }

  /** The source has lost one of two names of the file, whose change is still to come. */
  private void replaceOneOfTwoNames() throws FsException {
    driver.link("before", "linked");
    driver.drainAll();
    driver.put("a", "new");
    driver.rename("a", "linked", 0);
    driver.chmod("linked", 0600);
    driver.overwrite("before", 0, "ours");
    while (!"file 644 new".equals(driver.sourceTree().get("linked"))) {
      assertThat(driver.mount().step()).isTrue();
    }
  }

  @Test
  void changeWhoseTimeWasSetBack_whenAnotherNameWasReplaced_isNotOverwritten() throws Exception {
    replaceOneOfTwoNames();
    other("before", "them");
    driver.drainAll();
    assertThat(driver.sourceTree())
        .containsEntry("before", "file 644 them")
        .containsEntry("before.pmfs-conflict-node1-1", "file 644 ours");
  }

  @Test
  void linkByAnotherProgram_whenAnotherNameWasReplaced_isNoConflict() throws Exception {
    replaceOneOfTwoNames();
    int root = driver.calls.openRoot(Driver.SOURCE);
    driver.calls.link(root, Driver.name("before"), root, Driver.name("theirs"));
    driver.calls.close(root);
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("before", "file 644 ours");
    assertThat(driver.mount().drainStatus().conflicts()).isZero();
  }

  /** Another program's file has one of two names when the mount removes the other. */
  @Test
  void fileOfAnotherProgram_whenAnotherNameWasRemoved_isNotOverwritten() throws Exception {
    driver.link("before", "linked");
    driver.drainAll();
    driver.unlink("linked");
    driver.overwrite("before", 0, "ours");
    int root = driver.calls.openRoot(Driver.SOURCE);
    driver.calls.unlink(root, Driver.name("before"));
    driver.calls.close(root);
    other("before", "them");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("before", "file 644 them");
  }

  /**
   * Another program changes a file in place while the first write to it copies it, and the mount
   * sees that.
   */
  private void changeWhileItIsCopied(String text) throws FsException {
    driver.calls.makeAtSource("copied", "0123456789");
    AtomicInteger reads = new AtomicInteger();
    driver.setPause(
        call -> {
          if (call.equals("read") && reads.incrementAndGet() == AFTER_A_CALL) {
            other("copied", text);
            Await.until("the mount sees it", () -> modified("copied").equals(TIME));
          }
        });
    driver.restart();
  }

  private Instant modified(String path) throws FsException {
    return driver.node(path).attributes().modificationTime();
  }

  @Test
  void changeByAnotherProgram_whileTheFirstWriteCopies_isNotOverwritten() throws Exception {
    changeWhileItIsCopied("abcdefghij");
    driver.overwrite("copied", 3, "---");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("copied", "file 644 abc---ghij");
    assertThat(driver.tree()).isEqualTo(driver.sourceTree());
  }

  @Test
  void changeByAnotherProgram_whileTheFirstAppendCopies_isAppendedTo() throws Exception {
    changeWhileItIsCopied("0123456789 and more");
    driver.append("copied", ", ours");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("copied", "file 644 0123456789 and more, ours");
    assertThat(driver.tree()).isEqualTo(driver.sourceTree());
  }

  /** Half of the bytes are written in place; then the source is full. */
  private void appendHalf() throws FsException {
    driver.append("before", ", and ours");
    driver.calls.setRefusing(Driver.SOURCE, Errno.EDQUOT);
    driver.drainAll();
    driver.calls.setRefusing(Driver.SOURCE, null);
    assertThat(driver.sourceTree()).containsEntry("before", "file 644 old!, and");
  }

  private void assertKeptBeside(String theirs, String ours) throws FsException {
    driver.drainAll();
    assertThat(driver.sourceTree())
        .containsEntry("before", "file 644 " + theirs)
        .containsEntry("before.pmfs-conflict-node1-1", "file 644 " + ours);
    assertThat(driver.mount().drainStatus().conflicts()).isOne();
  }

  @Test
  void refusedAppend_thatNothingElseChanges_isCompleted() throws Exception {
    appendHalf();
    driver.restart();
    driver.drainAll();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree());
    assertThat(driver.mount().drainStatus().conflicts()).isZero();
  }

  @Test
  void changeByAnotherProgram_afterARefusedAppend_isNotOverwritten() throws Exception {
    appendHalf();
    other("before", "old!, and+");
    assertKeptBeside("old!, and+", "old!, and ours");
  }

  @Test
  void changeByAnotherProgram_afterARefusedAppend_isNotOverwrittenByTheNextProcess()
      throws Exception {
    appendHalf();
    other("before", "new!, and");
    driver.restart();
    assertKeptBeside("new!, and", "old!, and ours");
  }

  @Test
  void changeByAnotherProgram_afterARefusedAppendThatCouldNotBeOpenedAgain_isNotOverwritten()
      throws Exception {
    appendHalf();
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals("open") && name.equals(Driver.name("before"))) {
              throw new FsException(Errno.EDQUOT, call);
            }
          }
        });
    driver.drainAll();
    driver.calls.watch(new FakeCalls.Watcher() {});
    other("before", "new!, and");
    driver.restart();
    assertKeptBeside("new!, and", "old!, and ours");
  }

  /** A file with a name that the mount does not know is overwritten in place. */
  @Test
  void changeByAnotherProgram_afterARefusedOverwrite_isNotOverwritten() throws Exception {
    int root = driver.calls.openRoot(Driver.SOURCE);
    driver.calls.link(root, Driver.name("before"), root, Driver.name("unknown"));
    driver.calls.close(root);
    Await.until("the mount sees it", () -> driver.node("before").attributes().linkCount() == 2);
    driver.put("before", "ours");
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals("truncate") && "ours".equals(sourceText("before"))) {
              throw new FsException(Errno.EDQUOT, call);
            }
          }
        });
    driver.drainAll();
    driver.calls.watch(new FakeCalls.Watcher() {});
    assertThat(sourceText("before")).isEqualTo("ours");
    other("before", "theirs");
    assertKeptBeside("theirs", "ours");
  }

  private String sourceText(String path) {
    return Objects.requireNonNull(driver.sourceTree().get(path)).replaceFirst("file \\d+ ", "");
  }

  /** Another program writes, once, when bytes are copied to the source. */
  private void writeDuringACopy(String path, String text) {
    AtomicBoolean isWritten = new AtomicBoolean();
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals("write") && !isWritten.getAndSet(true)) {
              other(path, text);
            }
          }
        });
  }

  @Test
  void changeByAnotherProgram_whileTheNewVersionIsCopied_isNotOverwritten() throws Exception {
    driver.put("before", "ours");
    writeDuringACopy("before", "theirs!");
    while (driver.mount().step()) {
      assertThat(driver.mount().drainStatus().refused()).isZero();
    }
    long ours = driver.node("before.pmfs-conflict-node1-1").inode();
    driver.close(driver.mount().open(ours, OutputCalls.O_WRONLY, driver.caller()));
    assertKeptBeside("theirs!", "ours");
  }

  @Test
  void changeByAnotherProgram_beforeAnExchange_isNotOverwritten() throws Exception {
    driver.put("b", "b");
    driver.drainAll();
    driver.rename("b", "before", OutputCalls.RENAME_EXCHANGE);
    driver.overwrite("b", 0, "ours");
    other("before", "them!");
    driver.drainAll();
    assertThat(driver.sourceTree())
        .containsEntry("b", "file 644 them!")
        .containsEntry("b.pmfs-conflict-node1-1", "file 644 ours");
  }

  @Test
  void changeByAnotherProgram_beforeARename_isNotOverwritten() throws Exception {
    driver.rename("before", "moved", 0);
    driver.overwrite("moved", 0, "ours");
    other("before", "them!");
    driver.drainAll();
    assertThat(driver.sourceTree())
        .containsEntry("moved", "file 644 them!")
        .containsEntry("moved.pmfs-conflict-node1-1", "file 644 ours");
  }

  @Test
  void changeByAnotherProgram_beforeAChangeOfMode_isNotOverwritten() throws Exception {
    driver.chmod("before", 0600);
    driver.overwrite("before", 0, "ours");
    other("before", "them!");
    driver.drainAll();
    assertThat(driver.sourceTree())
        .containsEntry("before", "file 600 them!")
        .containsEntry("before.pmfs-conflict-node1-1", "file 600 ours");
  }

  @Test
  void changeByAnotherProgram_beforeAChangeOfModeThatIsRefused_isNotOverwritten() throws Exception {
    driver.chmod("before", 0600);
    driver.overwrite("before", 0, "ours");
    other("before", "them!");
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals("chmod") && name.equals(Driver.name("before"))) {
              throw new FsException(Errno.EPERM, call);
            }
          }
        });
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("before", "file 644 them!");
  }

  @Test
  void changeByAnotherProgram_beforeAnExtendedAttribute_isNotOverwritten() throws Exception {
    driver.setExtended("before", "user.a", "value");
    driver.overwrite("before", 0, "ours");
    other("before", "them!");
    driver.drainAll();
    assertThat(driver.sourceTree())
        .containsEntry("before", "file 644 them!")
        .containsEntry("before.pmfs-conflict-node1-1", "file 644 ours");
  }

  @Test
  void changeByAnotherProgram_beforeALink_isNotOverwritten() throws Exception {
    driver.link("before", "linked");
    driver.overwrite("before", 0, "ours");
    other("before", "them!");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("before", "file 644 them!");
  }

  @Test
  void changeByAnotherProgram_beforeARename_isShown() throws Exception {
    driver.rename("before", "moved", 0);
    other("before", "them!");
    driver.drainAll();
    assertThat(driver.read("moved")).isEqualTo("them!");
    assertThat(driver.node("moved").attributes().size()).isEqualTo(5);
  }

  @Test
  void directory_thatAnotherProgramMadeBeforeAStart_keepsItsMode() throws Exception {
    driver.mkdir("d");
    int root = driver.calls.openRoot(Driver.SOURCE);
    driver.calls.mkdir(root, Driver.name("d"), 0700);
    driver.calls.close(root);
    driver.restart();
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("d", "dir 700");
  }

  @Test
  void directory_thatAProcessMadeBeforeItDied_getsItsMode() throws Exception {
    driver.mkdir("d");
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void after(String call, FileName name) {
            if (call.equals("mkdir")) {
              throw new FakeCalls.Death();
            }
          }
        });
    try {
      driver.drainAll();
    } catch (FakeCalls.Death e) {
      driver.calls.watch(new FakeCalls.Watcher() {});
    }
    driver.chmod("d", 0711);
    driver.restart();
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("d", "dir 711");
    assertThat(driver.sourceTimes()).isEqualTo(driver.times());
  }

  /** A former process gave it the name, and later changes came before the next one looked. */
  @Test
  void versionOfADeadProcess_isReplacedByALaterOne() throws Exception {
    put("a", "one");
    driver.append("a", "two");
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void after(String call, FileName name) {
            if (call.equals("rename")) {
              throw new FakeCalls.Death();
            }
          }
        });
    try {
      driver.drainAll();
    } catch (FakeCalls.Death e) {
      driver.calls.watch(new FakeCalls.Watcher() {});
    }
    assertThat(driver.sourceTree()).containsKey("a");
    driver.append("a", "three");
    driver.restart();
    driver.append("a", "four");
    driver.drainAll();
    assertThat(driver.sourceTree())
        .containsOnlyKeys("a", "before")
        .containsEntry("a", "file 644 onetwothreefour");
    assertThat(driver.mount().drainStatus().conflicts()).isZero();
  }

  /** The process dies after a rename; later, calls of these names fail once each. */
  private void dieAfterRename(String path, String... failing) throws FsException {
    Set<String> left = new HashSet<>(Set.of(failing));
    boolean[] isDead = {false};
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (isDead[0] && left.remove(call)) {
              throw new FsException(Errno.EBUSY, call);
            }
          }

          @Override
          public void after(String call, FileName name) {
            if (!isDead[0] && call.equals("rename")) {
              isDead[0] = true;
              throw new FakeCalls.Death();
            }
          }
        });
    assertThatThrownBy(driver::drainAll).isInstanceOf(FakeCalls.Death.class);
    driver.restart();
    setTimes(path);
    driver.mount().step(); // Together with what was refused before.
    driver.drainAll();
    driver.drainAll();
    assertThat(driver.mount().drainStatus().failures()).isEmpty();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree());
    assertThat(driver.sourceDetails()).isEqualTo(driver.details());
  }

  /**
   * The content and its new times are one step, which must know what the content alone has made.
   */
  @Test
  void versionOfADeadProcess_whoseTimesAreSetBeforeTheNextAttemptFails_isOwn() throws Exception {
    driver.put("a", "content");
    dieAfterRename("a", "rename");
  }

  @Test
  void versionOfADeadProcess_underOneOfTwoNames_whoseTimesAreSet_isOwn() throws Exception {
    driver.link("before", "other");
    driver.drainAll();
    driver.overwrite("before", 0, "new");
    dieAfterRename("before", "link", "rename");
  }

  /** Copies that are made ahead of their turn do not hide what a dead process had finished. */
  @Test
  void versionOfADeadProcess_isKnown_alsoIfCopiesAreMadeAhead() throws Exception {
    try (Driver own = new Driver(directory.resolve("own"), 2, InstantSource.system())) {
      AtomicBoolean isDead = new AtomicBoolean();
      own.calls.watch(
          new FakeCalls.Watcher() {
            @Override
            public void before(String call, FileName name) {
              if (isDead.get()) {
                throw new FakeCalls.Death();
              }
            }

            @Override
            public void after(String call, FileName name) {
              if (call.equals("rename")) {
                isDead.set(true);
                throw new FakeCalls.Death();
              }
            }
          });
      own.put("a", "content");
      Await.until("it died", isDead::get);
      own.restart();
      own.calls.watch(new FakeCalls.Watcher() {});
      assertThat(own.mount().drain(20_000)).isTrue();
      assertThat(own.sourceTree()).containsOnlyKeys("a");
      assertThat(own.mount().drainStatus().conflicts()).isZero();
    }
  }

  /** Another program renames a directory. */
  private void renameAtSource(String from, String to) throws FsException {
    int root = driver.calls.openRoot(Driver.SOURCE);
    driver.calls.rename(root, Driver.name(from), root, Driver.name(to), 0);
    driver.calls.close(root);
  }

  @Test
  void directoryThatAnotherProgramRenamed_hasItsFiles() throws Exception {
    driver.mkdir("d");
    driver.put("d/f", "ours");
    driver.drainAll();
    assertThat(driver.read("d/f")).isEqualTo("ours");
    renameAtSource("d", "e");
    Await.until("the mount sees it", () -> driver.find("e") != null);
    assertThat(driver.tree()).containsEntry("e/f", "file 644 ours").doesNotContainKey("d");
    driver.put("e/g", "new");
    driver.drainAll();
    assertThat(driver.sourceTree())
        .containsEntry("e/g", "file 644 new")
        .containsEntry("e/f", "file 644 ours")
        .doesNotContainKey("d");
  }

  @Test
  void directoryInThePlaceOfARenamedOne_keepsItsFiles() throws Exception {
    driver.mkdir("d");
    driver.put("d/f", "ours");
    driver.drainAll();
    assertThat(driver.read("d/f")).isEqualTo("ours");
    renameAtSource("d", "e");
    int root = driver.calls.openRoot(Driver.SOURCE);
    driver.calls.mkdir(root, Driver.name("d"), 0755);
    driver.calls.close(root);
    driver.calls.makeAtSource("d/f", "them");
    Await.until("the mount sees it", () -> driver.find("e") != null);
    driver.unlink("e/f");
    driver.drainAll();
    assertThat(driver.sourceTree())
        .containsEntry("d/f", "file 644 them")
        .containsKey("e")
        .doesNotContainKey("e/f");
    assertThat(driver.read("d/f")).isEqualTo("them");
  }

  @Test
  void changesInADirectoryThatAnotherProgramRenamed_goWhereItIs() throws Exception {
    driver.mkdir("d");
    driver.put("d/f", "ours");
    driver.drainAll();
    driver.put("d/g", "new");
    renameAtSource("d", "e");
    Await.until("the mount sees it", () -> driver.find("e") != null);
    driver.drainAll();
    assertThat(driver.sourceTree())
        .containsEntry("e/g", "file 644 new")
        .containsEntry("e/f", "file 644 ours")
        .doesNotContainKey("d");
    assertThat(driver.mount().drainStatus().conflicts()).isZero();
  }

  /** The mount's own rename of it still waits. */
  @Test
  void directoryThatAnotherProgramRenamed_whenTheMountDidToo_losesNothing() throws Exception {
    driver.mkdir("d");
    driver.put("d/f", "ours");
    driver.drainAll();
    driver.rename("d", "mine", 0);
    renameAtSource("d", "e");
    Await.until("the mount sees it", () -> driver.find("e") != null);
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("e/f", "file 644 ours");
    assertThat(driver.mount().drainStatus().conflicts()).isOne();
    assertThat(driver.tree()).containsEntry("e/f", "file 644 ours");
  }
}
