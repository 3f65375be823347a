package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.Interrupts;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem.Node;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.file.Path;
import java.time.Duration;
import java.time.InstantSource;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * Promise: while the source does not answer, programs go on with the names, attributes and content
 * that the node knows.
 */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class HangingSourceTest {
  private static final long MOMENT_MILLIS = 200;
  private static final long PATIENCE_MILLIS = 600_000;
  private static final int FILES = 30;
  private static final long AT_ONCE_SECONDS = 20;

  /** As a pause counts, before and after each. */
  private static final int BEFORE_THE_SECOND_CALL = 3;

  @TempDir Path directory;

  private final ExecutorService programs = Executors.newCachedThreadPool();
  private Driver driver;

  @BeforeEach
  void open() throws Exception {
    driver = new Driver(directory);
    driver.setPatience(MOMENT_MILLIS, PATIENCE_MILLIS);
    driver.remount();
    driver.mkdir("d");
    driver.mkdir("d/empty");
    driver.put("d/file", "content");
    driver.put("d/other", "other");
    driver.symlink("file", "d/link");
    driver.drainAll();
    driver.tree();
    driver.mount().statistics();
  }

  @AfterEach
  void close() {
    driver.calls.setHanging(false);
    programs.shutdownNow();
    driver.close();
  }

  /** What would wait for the source fails the test, and not its end. */
  private <T> T soon(Callable<T> program) throws Exception {
    return programs.submit(program).get(AT_ONCE_SECONDS, TimeUnit.SECONDS);
  }

  /** Another program makes a file, and the mount has seen it. */
  private void makeAtSource(String path, String text) throws Exception {
    driver.calls.makeAtSource(path, text);
    // A listing that took long is not made again at once.
    Await.until(path + " is seen", () -> driver.find(path) != null);
  }

  private interface Work {
    void run() throws Exception;
  }

  private void goesOn(Work work) throws Exception {
    soon(
        () -> {
          work.run();
          return true;
        });
  }

  private void worksWithoutSource() throws Exception {
    goesOn(() -> driver.put("d/new", "new content"));
    goesOn(() -> driver.mkdir("d/made"));
    goesOn(() -> driver.put("d/made/inside", "inside"));
    assertThat(soon(() -> driver.read("d/file"))).isEqualTo("content");
    assertThat(soon(() -> driver.node("d/file").attributes().size())).isEqualTo(7);
    assertThat(soon(() -> driver.find("d/absent"))).isNull();
    assertThat(soon(() -> driver.names("d")))
        .containsExactlyInAnyOrder("empty", "file", "link", "made", "new", "other");
    assertThat(soon(() -> driver.mount().statistics())).isNotNull();
    Node link = soon(() -> driver.node("d/link"));
    assertThat(soon(() -> driver.mount().readSymbolicLink(link.inode())).toString())
        .isEqualTo("file");
    Node file = soon(() -> driver.node("d/file"));
    FileName capability = FileName.of("security.capability");
    assertThat(soon(() -> driver.mount().extendedAttribute(file.inode(), capability))).isNull();
    goesOn(() -> driver.chmod("d/file", 0600));
    goesOn(() -> driver.append("d/file", " and more"));
    goesOn(() -> driver.rename("d/other", "d/moved", 0));
    goesOn(() -> driver.unlink("d/link"));
    goesOn(() -> driver.rmdir("d/empty"));
    assertThat(soon(() -> driver.read("d/moved"))).isEqualTo("other");
  }

  private void reachesSource() throws Exception {
    driver.drainAll();
    assertThat(driver.sourceTree())
        .containsEntry("d/new", "file 644 new content")
        .containsEntry("d/made/inside", "file 644 inside")
        .containsEntry("d/file", "file 600 content and more")
        .containsEntry("d/moved", "file 644 other")
        .doesNotContainKeys("d/other", "d/link", "d/empty");
    assertThat(driver.tree()).isEqualTo(driver.sourceTree());
  }

  @Test
  void source_thatHangs_isNotWaitedForByWhatTheNodeKnows() throws Exception {
    driver.calls.setHanging(true);
    worksWithoutSource();
    assertThat(soon(() -> driver.mount().sourceFailure())).contains("has not answered since");
    driver.calls.setHanging(false);
    reachesSource();
    assertThat(driver.mount().sourceFailure()).isNull();
  }

  @ParameterizedTest
  @EnumSource(
      value = Errno.class,
      names = {"EIO", "ESTALE", "ENOTCONN", "ETIMEDOUT", "EHOSTDOWN"})
  void source_thatFails_isNotAskedForWhatTheNodeKnows(Errno errno) throws Exception {
    driver.calls.setAway(new FsException(errno, "away"));
    worksWithoutSource();
    assertThat(soon(() -> driver.mount().sourceFailure())).contains("fails since");
    driver.calls.setAway(null);
    reachesSource();
    assertThat(driver.mount().sourceFailure()).isNull();
  }

  /** Not each file and each program. */
  @Test
  void source_thatHangs_costsAMomentOnce() throws Exception {
    for (int i = 0; i < FILES; i++) {
      driver.put("d/f" + i, "x");
    }
    driver.drainAll();
    driver.setPatience(2000, PATIENCE_MILLIS);
    driver.remount();
    driver.tree();
    driver.calls.setHanging(true);
    soon(() -> driver.find("d/f0"));
    long begin = System.nanoTime();
    for (int i = 0; i < 3 * FILES; i++) {
      int number = i % FILES;
      assertThat(soon(() -> driver.find("d/f" + number))).isNotNull();
    }
    assertThat(Duration.ofNanos(System.nanoTime() - begin)).isLessThan(Duration.ofSeconds(12));
  }

  @Test
  void source_thatListsNoInodeNumbers_isKnownByWhatWasLookedUp() throws Exception {
    driver.calls.listNoNumbers();
    driver.remount();
    assertThat(driver.find("d/file")).isNotNull();
    driver.calls.setHanging(true);
    assertThat(soon(() -> driver.read("d/file"))).isEqualTo("content");
  }

  @Test
  void source_thatListsNoInodeNumbers_isKnownByWhatTheMountMade() throws Exception {
    driver.calls.listNoNumbers();
    driver.remount();
    driver.put("d/written", "by the mount");
    driver.drainAll();
    assertThat(driver.names("d")).contains("written");
    driver.calls.setHanging(true);
    assertThat(soon(() -> driver.read("d/written"))).isEqualTo("by the mount");
  }

  /** A directory that this mount has made is known before it was listed. */
  @Test
  void source_hangsAfterADirectoryWasMade_filesAreMadeThere() throws Exception {
    driver.mkdir("fresh");
    driver.drainAll();
    driver.calls.setHanging(true);
    goesOn(() -> driver.put("fresh/file", "content"));
    driver.calls.setHanging(false);
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("fresh/file", "file 644 content");
  }

  /** Its step holds the names at the source: no request waits for it. */
  @Test
  void committer_thatHangsWhileItMovesAName_holdsNobody() throws Exception {
    driver.rename("d/other", "d/renamed", 0);
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) {
            if (call.equals("rename")) {
              driver.calls.hangHere();
            }
          }
        });
    Future<Boolean> step = programs.submit(() -> driver.mount().step());
    driver.calls.awaitHanging();
    assertThat(soon(() -> driver.read("d/renamed"))).isEqualTo("other");
    assertThat(soon(() -> driver.read("d/file"))).isEqualTo("content");
    goesOn(() -> driver.put("d/new", "new"));
    assertThat(soon(() -> driver.names("d")))
        .containsExactlyInAnyOrder("empty", "file", "link", "new", "renamed");
    assertThat(step.isDone()).isFalse();
    driver.calls.watch(new FakeCalls.Watcher() {});
    driver.calls.setHanging(false);
    assertThat(step.get()).isTrue();
    driver.drainAll();
    assertThat(driver.tree()).isEqualTo(driver.sourceTree());
  }

  @Test
  void nameThatAnotherProgramMadeMeanwhile_isKeptBeside() throws Exception {
    driver.calls.setHanging(true);
    goesOn(() -> driver.put("d/new", "ours"));
    driver.calls.makeAtSource("d/new", "theirs");
    driver.calls.setHanging(false);
    driver.drainAll();
    assertThat(driver.sourceTree())
        .containsEntry("d/new", "file 644 theirs")
        .containsEntry("d/new.pmfs-conflict-node1-1", "file 644 ours");
  }

  @Test
  void changeThatAnotherProgramMadeMeanwhile_isSeenWhenTheSourceAnswers() throws Exception {
    driver.calls.setHanging(true);
    assertThat(soon(() -> driver.read("d/file"))).isEqualTo("content");
    driver.calls.makeAtSource("d/file", "changed by another");
    driver.calls.setHanging(false);
    Await.until("the change is seen", () -> !readAgain("d/file").equals("content"));
    assertThat(driver.read("d/file")).isEqualTo("changed by another");
  }

  /** The kernel looks a name up again if its file was replaced between look-up and open. */
  private String readAgain(String path) throws FsException {
    try {
      return driver.read(path);
    } catch (FsException e) {
      if (e.errno() != Errno.ESTALE) {
        throw e;
      }
      return driver.read(path);
    }
  }

  @Test
  void whatIsNotKnown_waitsForTheSource() throws Exception {
    makeAtSource("d/unseen", "unseen");
    driver.calls.setHanging(true);
    Future<String> reader = programs.submit(() -> driver.read("d/unseen"));
    Thread.sleep(3 * MOMENT_MILLIS);
    assertThat(reader.isDone()).isFalse();
    assertThat(soon(() -> driver.node("d/unseen").attributes().size())).isEqualTo(6);
    driver.calls.setHanging(false);
    assertThat(reader.get()).isEqualTo("unseen");
  }

  @Test
  void whatIsNotKnown_endsWithItsProgram() throws Exception {
    driver.calls.makeAtSource("d/unseen", "unseen");
    driver.remount(); // Nothing is listed any more.
    driver.calls.setHanging(true);
    endsWithItsProgram(() -> driver.node("d/unseen"));
    driver.calls.setHanging(false);
    assertThat(driver.node("d/unseen").attributes().size()).isEqualTo(6);
  }

  /** A program that waits for the source ends with a signal to it, not with one to another. */
  private void endsWithItsProgram(Work work) throws Exception {
    Interrupts interrupts = driver.mount().interrupts();
    Future<Boolean> program =
        programs.submit(
            () -> {
              interrupts.begin(42);
              try {
                work.run();
                return true;
              } finally {
                interrupts.end(42);
              }
            });
    driver.calls.awaitHanging();
    Thread.sleep(2 * MOMENT_MILLIS);
    assertThat(program.isDone()).isFalse();
    interrupts.interrupt(41);
    interrupts.interrupt(42);
    assertThatThrownBy(() -> program.get(AT_ONCE_SECONDS, TimeUnit.SECONDS))
        .hasCauseInstanceOf(FsException.class)
        .hasMessageContaining("EINTR");
  }

  /** The first write to a file copies it. */
  @Test
  void whatIsNotKnown_isCopiedUntilItsProgramEnds() throws Exception {
    String content = "x".repeat(3 << 20);
    driver.calls.makeAtSource("large", content);
    AtomicInteger reads = new AtomicInteger();
    driver.setPause(
        call -> {
          if (call.equals("read") && reads.incrementAndGet() == BEFORE_THE_SECOND_CALL) {
            driver.calls.hangHere();
          }
        });
    driver.remount();
    int before = driver.calls.fileCount(driver.places);
    Opened file =
        driver.mount().open(driver.node("large").inode(), OutputCalls.O_RDWR, driver.caller());
    endsWithItsProgram(() -> driver.write(file, 0, "new"));
    driver.mount().tidy();
    assertThat(driver.calls.fileCount(driver.places)).isEqualTo(before);
    driver.calls.setHanging(false);
    driver.write(file, 0, "new");
    driver.close(file);
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("large", "file 644 new" + content.substring(3));
  }

  @Test
  void whatIsNotKnown_isAskedForHolesUntilItsProgramEnds() throws Exception {
    driver.calls.makeAtSource("large", "content");
    driver.remount();
    long number = driver.node("large").inode();
    driver.read(number);
    Opened file = driver.mount().open(number, OutputCalls.O_RDONLY, driver.caller());
    driver.read(number);
    driver.calls.setHanging(true);
    endsWithItsProgram(() -> driver.mount().seek(number, file.handle(), 0, OutputCalls.SEEK_HOLE));
    driver.calls.setHanging(false);
    assertThat(driver.mount().seek(number, file.handle(), 0, OutputCalls.SEEK_HOLE)).isEqualTo(7);
  }

  @Test
  void patience_isOver_whatIsKnownIsNotEnough() throws Exception {
    driver.setPatience(20, 300);
    driver.remount();
    driver.tree();
    driver.calls.setHanging(true);
    assertThat(soon(() -> driver.find("d/file"))).isNotNull();
    Thread.sleep(400);
    Future<Node> program = programs.submit(() -> driver.node("d/file"));
    Thread.sleep(200);
    assertThat(program.isDone()).isFalse();
    driver.calls.setHanging(false);
    assertThat(program.get(AT_ONCE_SECONDS, TimeUnit.SECONDS)).isNotNull();
  }

  @Test
  void patience_isOver_failuresAreTold() throws Exception {
    driver.setPatience(20, 300);
    driver.remount();
    driver.tree();
    driver.calls.setAway(new FsException(Errno.EIO, "away"));
    assertThat(driver.find("d/file")).isNotNull();
    Thread.sleep(400);
    assertThatThrownBy(() -> driver.find("d/file"))
        .isInstanceOf(FsException.class)
        .hasMessageContaining("EIO");
    driver.calls.setAway(null);
    assertThat(driver.find("d/file")).isNotNull();
  }

  @Test
  void manyLooksThatHang_areAFewThreads() throws Exception {
    for (int i = 0; i < 200; i++) {
      driver.put("d/f" + i, "x");
    }
    driver.drainAll();
    driver.tree();
    driver.calls.setHanging(true);
    for (int i = 0; i < 200; i++) {
      int number = i;
      assertThat(soon(() -> driver.find("d/f" + number))).isNotNull();
    }
    assertThat(
            Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().equals("pmfs-source-look"))
                .count())
        .isLessThanOrEqualTo(65);
    driver.calls.setHanging(false);
    assertThat(driver.read("d/f199")).isEqualTo("x");
  }

  /** A file of the source may wait for it when it is closed. */
  @Test
  void closeOfAFileOfTheSource_thatHangs_holdsNobody() throws Exception {
    makeAtSource("d/unseen", "unseen");
    assertThat(driver.read("d/unseen")).isEqualTo("unseen");
    Opened open = driver.mount().open(driver.node("d/unseen").inode(), 0, driver.caller());
    driver.read("d/unseen");
    driver.calls.setHanging(true);
    goesOn(() -> driver.mount().release(open.node().inode(), open.handle()));
    goesOn(() -> driver.put("d/new", "new"));
  }

  /** A tier had no room for it. */
  @Test
  void closeOfADataFileAtTheSource_thatHangs_holdsNobody() throws Exception {
    driver.setCapacity(0);
    driver.restart();
    driver.put("d/spilled", "spilled");
    assertThat(driver.temporaries()).hasSize(1);
    driver.setCapacity(1L << 40);
    driver.restart();
    Opened open = driver.mount().open(driver.node("d/spilled").inode(), 0, driver.caller());
    assertThat(driver.tree()).containsEntry("d/spilled", "file 644 spilled");
    driver.calls.setHanging(true);
    goesOn(() -> driver.mount().release(open.node().inode(), open.handle()));
    goesOn(() -> driver.put("d/new", "new"));
  }

  /** A full tier has an obsolete data file, too. */
  @Test
  void obsoleteDataFileAtTheSource_thatHangs_holdsNoWriter() throws Exception {
    driver.setCapacity(0);
    driver.restart();
    driver.put("d/spilled", "spilled");
    driver.setCapacity(4096);
    driver.restart();
    driver.put("d/first", "first");
    while (driver.mount().step()) {
      // Without tidying.
    }
    assertThat(driver.temporaries()).hasSize(1);
    driver.calls.setHanging(true);
    goesOn(() -> driver.put("d/new", "new"));
    assertThat(driver.calls.fileCount(driver.places)).isOne();
    driver.calls.setHanging(false);
    driver.drainAll();
    assertThat(driver.temporaries()).isEmpty();
  }

  @Test
  void realClock_mountOpensWhileTheSourceHangs() throws Exception {
    driver.calls.setHanging(true);
    goesOn(
        () -> {
          try (Driver other = new Driver(directory.resolve("other"), 0, InstantSource.system())) {
            assertThat(other.mount().drainStatus().waitingChanges()).isZero();
          }
        });
  }
}
