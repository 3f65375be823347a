package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class WritableMountTest {
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

  private void seed(String path, String text) throws Exception {
    int root = driver.calls.openRoot(Driver.SOURCE);
    int file =
        driver.calls.open(
            root, Driver.name(path), OutputCalls.O_CREAT | OutputCalls.O_WRONLY, 0644);
    driver.calls.write(file, Driver.bytes(text), 0);
    driver.calls.truncate(file, text.length());
    driver.calls.close(file);
    driver.calls.close(root);
  }

  private long sourceNumber(String name) {
    return Objects.requireNonNull(driver.calls.sourceRoot().children.get(Driver.name(name))).number;
  }

  @Test
  void overwrite_ofSourceFile_keepsRestAndReachesSource() throws Exception {
    seed("a", "0123456789");
    driver.overwrite("a", 2, "xx");
    assertThat(driver.read("a")).isEqualTo("01xx456789");
    assertThat(driver.sourceTree()).containsEntry("a", "file 644 0123456789");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("a", "file 644 01xx456789");
    assertThat(driver.temporaries()).isEmpty();
  }

  @Test
  void overwrite_whileVersionWaits_bringsBothInOrder() throws Exception {
    driver.put("a", "one");
    driver.put("b", "x");
    driver.overwrite("a", 0, "two");
    assertThat(driver.mount().step()).isTrue();
    assertThat(driver.sourceTree()).containsEntry("a", "file 644 one").doesNotContainKey("b");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("a", "file 644 two").containsKey("b");
  }

  @Test
  void append_toDrainedFile_isAppendedAtSource() throws Exception {
    driver.put("a", "one");
    driver.drainAll();
    long number = sourceNumber("a");
    driver.append("a", "two");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("a", "file 644 onetwo");
    assertThat(sourceNumber("a")).isEqualTo(number);
  }

  @Test
  void file_changedByOthers_isKeptBeside() throws Exception {
    seed("a", "mine");
    driver.overwrite("a", 0, "ours");
    seed("a", "theirs");
    driver.drainAll();
    assertThat(driver.sourceTree())
        .containsEntry("a", "file 644 theirs")
        .containsEntry("a.pmfs-conflict-node1-1", "file 644 ours");
    assertThat(driver.mount().drainStatus().conflicts()).isEqualTo(1);
    assertThat(driver.tree()).isEqualTo(driver.sourceTree());
  }

  @Test
  void directory_thatVanishedFromTheSource_isReportedByTheNextProcessToo() throws Exception {
    driver.mkdir("d");
    driver.drainAll();
    driver.put("d/a", "content");
    driver.calls.sourceRoot().children.remove(Driver.name("d"));
    driver.drainAll();
    assertThat(driver.sourceTree()).containsKey("d/a");
    driver.restart();
    assertThat(driver.mount().drainStatus().conflicts()).isOne();
    assertThat(driver.mount().drainStatus().failures())
        .singleElement()
        .satisfies(failure -> assertThat(failure.path()).isEqualTo("d"));
  }

  @Test
  void conflict_thatIsAcknowledged_isToldNoMore() throws Exception {
    seed("a", "mine");
    seed("b", "mine");
    driver.overwrite("a", 0, "ours");
    seed("a", "theirs");
    driver.drainAll();
    assertThat(driver.mount().acknowledge().failures()).hasSize(1);
    assertThat(driver.mount().drainStatus().failures()).isEmpty();
    assertThat(driver.mount().drainStatus().conflicts()).isZero();

    driver.overwrite("b", 0, "ours");
    seed("b", "theirs");
    driver.drainAll();
    driver.restart();
    assertThat(driver.mount().drainStatus().conflicts()).isEqualTo(1);
    assertThat(driver.mount().drainStatus().failures())
        .singleElement()
        .satisfies(failure -> assertThat(failure.path()).startsWith("b"));
  }

  @Test
  void fsync_thatMeansTheSource_returnsWhenItHasTheFile() throws Exception {
    try (Driver own = new Driver(directory.resolve("own"), 2, InstantSource.system())) {
      own.setSyncsAtSource();
      own.remount();
      own.mkdir("d");
      Opened file = own.create("d/a");
      for (int i = 1; i <= 20; i++) {
        own.write(file, i - 1, "x");
        own.mount().fsync(file.node().inode(), file.handle(), false, own.caller());
        assertThat(own.sourceTree()).containsEntry("d/a", "file 644 " + "x".repeat(i));
      }
      own.rename("d/a", "d/b", 0);
      own.mount().fsyncDirectory(own.node("d").inode(), own.caller());
      assertThat(own.sourceTree()).containsKey("d/b").doesNotContainKey("d/a");

      own.calls.setAway(new FsException(Errno.EDQUOT, "full"));
      own.write(file, 20, "y");
      assertThatThrownBy(
              () -> own.mount().fsync(file.node().inode(), file.handle(), false, own.caller()))
          .isInstanceOfSatisfying(
              FsException.class, e -> assertThat(e.errno()).isEqualTo(Errno.EDQUOT));
      own.calls.setAway(null);
      own.mount().fsync(file.node().inode(), file.handle(), false, own.caller());
      assertThat(own.sourceTree()).containsEntry("d/b", "file 644 " + "x".repeat(20) + "y");
      own.unlink("d/b");
      own.mount().fsync(file.node().inode(), file.handle(), false, own.caller());
    }
  }

  /** The last change of the directory is made, and an earlier one is not. */
  @Test
  @Timeout(60)
  void fsync_ofADirectory_thatMeansTheSource_failsWhileAnEntryIsRefused() throws Exception {
    try (Driver own = new Driver(directory.resolve("own"), 2, InstantSource.system())) {
      own.setSyncsAtSource();
      own.remount();
      own.mkdir("d");
      own.calls.watch(
          new FakeCalls.Watcher() {
            @Override
            public void before(String call, FileName name) throws FsException {
              if (call.equals("mkdir") && name.equals(Driver.name("a"))) {
                throw new FsException(Errno.EACCES, call);
              }
            }
          });
      own.mkdir("d/a");
      own.mkdir("d/b");
      long d = own.node("d").inode();
      assertThatThrownBy(() -> own.mount().fsyncDirectory(d, own.caller()))
          .isInstanceOfSatisfying(
              FsException.class, e -> assertThat(e.errno()).isEqualTo(Errno.EACCES));
      own.calls.watch(new FakeCalls.Watcher() {});
      own.mount().retry(Driver.name(""));
      assertThat(own.mount().drain(30_000)).isTrue();
      own.mount().fsyncDirectory(d, own.caller());
      assertThat(own.sourceTree()).containsKeys("d/a", "d/b");
    }
  }

  /** cp(1) does it, whether a tier has the content or only the source. */
  @Test
  void copyRange_copiesWhatATierOrOnlyTheSourceHas() throws Exception {
    seed("source", "of the source");
    driver.put("tier", "of a tier");
    for (String from : List.of("source", "tier")) {
      Opened to = driver.create("copy of " + from);
      Opened opened = driver.mount().open(driver.node(from).inode(), 0, driver.caller());
      long size = driver.node(from).attributes().size();
      long copied =
          driver
              .mount()
              .copyRange(
                  opened.node().inode(),
                  opened.handle(),
                  0,
                  to.node().inode(),
                  to.handle(),
                  0,
                  size,
                  driver.caller());
      assertThat(copied).isEqualTo(size);
      driver.close(to);
      driver.mount().release(opened.node().inode(), opened.handle());
      assertThat(driver.read("copy of " + from)).isEqualTo(driver.read(from));
    }
  }

  @Test
  void truncate_whileAReaderHasTheFile_reachesTheSource() throws Exception {
    driver.put("a", "content");
    Opened reader = driver.mount().open(driver.node("a").inode(), 0, driver.caller());
    driver.truncate("a", 3);
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("a", "file 644 con");
    driver.mount().release(reader.node().inode(), reader.handle());
  }

  @Test
  void open_toReadWithTruncation_reachesTheSourceWithoutAFlush() throws Exception {
    driver.put("a", "content");
    Opened reader =
        driver.mount().open(driver.node("a").inode(), OutputCalls.O_TRUNC, driver.caller());
    driver.mount().release(reader.node().inode(), reader.handle());
    Opened made = driver.mount().create(1, Driver.name("b"), 0644, 0, driver.caller());
    driver.mount().release(made.node().inode(), made.handle());
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("a", "file 644 ").containsEntry("b", "file 644 ");
  }

  @Test
  void extendedAttribute_inAnUnknownNameSpace_isNotSupported() throws Exception {
    driver.put("a", "");
    long inode = driver.node("a").inode();
    assertThatThrownBy(() -> driver.mount().extendedAttribute(inode, Driver.name("system.x")))
        .isInstanceOfSatisfying(
            FsException.class, e -> assertThat(e.errno()).isEqualTo(Errno.EOPNOTSUPP));
    assertThat(driver.mount().extendedAttribute(inode, Driver.name("user.x"))).isNull();
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2})
  void attributes_changedAndDrainedDuringALook_stay(int look) throws Exception {
    driver.put("a", "x");
    driver.drainAll();
    AtomicLong looks = new AtomicLong();
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void looked(FileName name) {
            if (name.toString().equals("a") && looks.incrementAndGet() == look) {
              try {
                driver.chmod("a", 0640);
                driver.drainAll();
              } catch (FsException e) {
                throw new AssertionError(e);
              }
            }
          }
        });
    assertThat(driver.node("a").attributes().mode() & 07777).isEqualTo(0640);
    assertThat(looks.get()).isGreaterThanOrEqualTo(look);
  }

  @Test
  void extendedAttribute_drainedDuringALook_isThere() throws Exception {
    driver.put("a", "x");
    driver.drainAll();
    long inode = driver.node("a").inode();
    driver
        .mount()
        .setExtendedAttribute(inode, Driver.name("user.x"), new byte[] {1}, 0, driver.caller());
    AtomicLong looks = new AtomicLong();
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void looked(FileName name) {
            if (looks.incrementAndGet() == 1) {
              try {
                driver.drainAll();
              } catch (FsException e) {
                throw new AssertionError(e);
              }
            }
          }
        });
    assertThat(driver.mount().extendedAttributes(inode)).containsKey(Driver.name("user.x"));
    assertThat(looks.get()).isPositive();
  }

  @Test
  void setGroupId_ofAUserWithMoreGroups_reachesTheSource() throws Exception {
    driver.put("a", "x");
    driver.mkdir("d");
    for (String path : new String[] {"a", "d"}) {
      long inode = driver.node(path).inode();
      driver
          .mount()
          .setAttributes(
              inode,
              new WritableFileSystem.NewAttributes(null, 77, 88, null, null, null, 0, false),
              driver.caller());
      driver
          .mount()
          .setAttributes(
              inode,
              new WritableFileSystem.NewAttributes(02755, null, null, null, null, null, 0, false),
              new Caller(driver.caller().unique(), 77, 77, 1));
    }
    driver.drainAll();
    assertThat(driver.sourceTree())
        .containsEntry("a", "file 2755 x")
        .containsEntry("d", "dir 2755");
  }

  @Test
  void name_madeByOthers_isKept() throws Exception {
    driver.put("a", "ours");
    seed("a", "theirs");
    driver.drainAll();
    assertThat(driver.sourceTree())
        .containsEntry("a", "file 644 theirs")
        .containsEntry("a.pmfs-conflict-node1-1", "file 644 ours");
    assertThat(driver.tree()).isEqualTo(driver.sourceTree());
  }

  @Test
  void resentChanges_afterRestart_takeEffectOnce() throws Exception {
    Caller mkdir = driver.caller();
    long made = driver.mount().mkdir(1, Driver.name("d"), 0755, mkdir).inode();
    driver.put("f", "1");
    Caller unlink = driver.caller();
    driver.mount().unlink(1, Driver.name("f"), unlink);
    driver.restart();
    assertThat(driver.mount().mkdir(1, Driver.name("d"), 0755, mkdir).inode()).isEqualTo(made);
    driver.mount().unlink(1, Driver.name("f"), unlink);
    driver.remount();
    assertThatThrownBy(() -> driver.mount().mkdir(1, Driver.name("d"), 0755, mkdir))
        .isInstanceOf(FsException.class)
        .hasMessageContaining("EEXIST");
  }

  @Test
  void openUnlinkedFile_survivesRestart_andGoesWhenForgotten() throws Exception {
    Opened file = driver.create("a");
    driver.write(file, 0, "data");
    driver.unlink("a");
    driver.restart();
    assertThat(driver.read(file.node().inode())).isEqualTo("data");
    driver.mount().release(file.node().inode(), file.handle());
    driver.mount().forget(file.node().inode(), 1);
    assertThatThrownBy(() -> driver.read(file.node().inode())).isInstanceOf(FsException.class);
    driver.drainAll();
    assertThat(driver.sourceTree()).isEmpty();
  }

  /** As ext4. */
  @Test
  void unnamedFile_inARemovedDirectory_isNotPermitted() throws Exception {
    driver.mkdir("d");
    long removed = driver.node("d").inode();
    driver.rmdir("d");
    assertThatThrownBy(
            () -> driver.mount().createUnnamed(removed, 0600, OutputCalls.O_RDWR, driver.caller()))
        .isInstanceOf(FsException.class)
        .hasMessageContaining("EPERM");
  }

  /** On another node: the source has it before this rename has found out what it replaces. */
  @Test
  void rename_ofANameThatAnotherRenameReplacesMeanwhile_movesWhatIsThere() throws Exception {
    driver.mkdir("a");
    driver.mkdir("empty");
    driver.mkdir("other");
    driver.put("other/file", "content");
    driver.setTimes("", Instant.EPOCH); // It is not listed again soon.
    driver.drainAll();
    AtomicBoolean isRenaming = new AtomicBoolean();
    driver.setPause(
        call -> {
          if (call.equals("list") && isRenaming.getAndSet(false)) {
            driver.rename("other", "a", 0);
            driver.drainAll();
          }
        });
    driver.restart();
    driver.node("a");
    isRenaming.set(true);
    driver.rename("a", "empty", 0);
    assertThat(isRenaming).isFalse();
    assertThat(driver.tree()).containsOnlyKeys("empty", "empty/file");
    driver.drainAll();
    assertThat(driver.sourceTree()).isEqualTo(driver.tree());
  }

  @Test
  void rename_ofOpenFile_takesItsDataAlong() throws Exception {
    Opened file = driver.create("a");
    driver.write(file, 0, "data");
    driver.rename("a", "b", 0);
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("b", "file 644 data").hasSize(1);
    driver.write(file, 4, "more");
    driver.close(file);
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("b", "file 644 datamore");
  }

  @Test
  void growingFile_arrivesInPieces() throws Exception {
    Opened file = driver.create("log");
    driver.write(file, 0, "one");
    driver.mount().announcePieces();
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("log", "file 644 one");
    driver.write(file, 3, "two");
    driver.mount().announcePieces();
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("log", "file 644 onetwo");
    driver.write(file, 0, "ONE");
    driver.mount().announcePieces();
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("log", "file 644 onetwo");
    driver.close(file);
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("log", "file 644 ONEtwo");
  }

  @Test
  void manyAppends_withoutOtherChanges_areOneStep() throws Exception {
    driver.put("log", "0");
    for (int i = 1; i < 10; i++) {
      driver.append("log", String.valueOf(i));
    }
    driver.put("other", "");
    assertThat(driver.mount().step()).isTrue();
    assertThat(driver.sourceTree()).containsOnlyKeys("log");
    assertThat(driver.read("log")).isEqualTo("0123456789");
  }

  @Test
  void list_ofManyNames_showsEachOnceFromAnyPosition() throws Exception {
    for (int i = 0; i < 700; i++) {
      driver.put("f" + i, "");
      if (i == 350) {
        driver.drainAll();
      }
    }
    assertThat(driver.names("")).hasSize(700).doesNotHaveDuplicates();
    driver.drainAll();
    assertThat(driver.names("")).hasSize(700).doesNotHaveDuplicates();
  }

  @Test
  void source_thatIsAway_isWaitedFor() throws Exception {
    driver.put("a", "1");
    driver.calls.setAway(new FsException(Errno.ENOTCONN, "away"));
    driver.restart();
    assertThatThrownBy(() -> driver.mount().step()).isInstanceOf(FsException.class);
    driver.calls.setAway(null);
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("a", "file 644 1");
  }

  @Test
  void attribute_thatSourceRefuses_holdsNothingBack() throws Exception {
    driver.put("a", "1");
    driver
        .mount()
        .setExtendedAttribute(
            driver.node("a").inode(), Driver.name("trusted.x"), new byte[1], 0, driver.caller());
    driver.put("b", "2");
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals("setxattr")) {
              throw new FsException(Errno.EOPNOTSUPP, "refused");
            }
          }
        });
    driver.drainAll();
    assertThat(driver.sourceTree()).containsOnlyKeys("a", "b");
    assertThat(driver.mount().drainStatus().refused()).isEqualTo(1);
    assertThat(driver.mount().drainStatus().failures().get(0).path()).isEqualTo("a");
  }

  @Test
  void write_withoutTheKernelsCheck_takesCapabilities() throws Exception {
    Opened file = driver.createOnlyWritten("a");
    long inode = file.node().inode();
    FileName capability = Driver.name("security.capability");
    driver.mount().setExtendedAttribute(inode, capability, new byte[20], 0, driver.caller());
    driver
        .mount()
        .setExtendedAttribute(inode, Driver.name("user.a"), new byte[1], 0, driver.caller());

    driver.write(file, 0, "other");

    assertThat(driver.mount().extendedAttributes(inode)).containsOnlyKeys(Driver.name("user.a"));
  }

  @Test
  void setExtendedAttribute_outsideNameSpaces_isRefused() throws Exception {
    driver.put("a", "1");
    assertThatThrownBy(
            () ->
                driver
                    .mount()
                    .setExtendedAttribute(
                        driver.node("a").inode(),
                        Driver.name("system.x"),
                        new byte[1],
                        0,
                        driver.caller()))
        .hasMessageContaining("EOPNOTSUPP");
  }

  @Test
  void truncate_toSameSize_changesTimes() throws Exception {
    driver.put("a", "");
    driver.drainAll();
    Instant before = driver.node("a").attributes().modificationTime();
    driver.truncate("a", 0);
    assertThat(driver.node("a").attributes().modificationTime()).isAfter(before);
    driver.put("a", "");
    driver.drainAll();
    assertThat(driver.tree()).isEqualTo(driver.sourceTree());
  }

  @Test
  void fullTier_evictsWhatSourceHas_thenWritesAtSource() throws Exception {
    driver.setCapacity(64 << 10);
    driver.remount();
    driver.put("a", "a".repeat(40_000));
    driver.drainAll();
    driver.put("b", "b".repeat(40_000));
    assertThat(driver.mount().drainStatus().localBytes()).isLessThanOrEqualTo(64 << 10);
    assertThat(driver.read("a")).hasSize(40_000);
    driver.drainAll();
    Opened big = driver.create("big");
    for (int i = 0; i < 10; i++) {
      driver.write(big, 20_000L * i, "c".repeat(20_000));
      driver.drainAll();
    }
    driver.close(big);
    assertThat(driver.read("big")).isEqualTo("c".repeat(200_000));
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("big", "file 644 " + "c".repeat(200_000));
    driver.restart();
    assertThat(driver.read("big")).isEqualTo("c".repeat(200_000));
  }

  @Test
  void drainedFile_whoseLocalDataAPowerCutTook_isReadFromTheSource() throws Exception {
    driver.put("a", "content");
    driver.drainAll();
    driver.reboot();
    assertThat(driver.read("a")).isEqualTo("content");
    driver.append("a", " and more");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsEntry("a", "file 644 content and more");
  }

  @Test
  void refusal_whileTheClockIsSetBack_isTriedAgainSoon() throws Exception {
    AtomicLong hoursBack = new AtomicLong();
    InstantSource clock = () -> Instant.now().minus(Duration.ofHours(hoursBack.get()));
    try (Driver own = new Driver(directory.resolve("own"), 2, clock)) {
      own.calls.watch(
          new FakeCalls.Watcher() {
            @Override
            public void before(String call, FileName name) throws FsException {
              if (call.equals("mkdir")) {
                throw new FsException(Errno.EIO, "refused");
              }
            }
          });
      own.mkdir("a");
      Await.until("a change is refused", () -> own.mount().drainStatus().refused() > 0);
      hoursBack.set(1);
      own.calls.watch(new FakeCalls.Watcher() {});
      Await.until("no change waits", () -> own.mount().drainStatus().waitingChanges() == 0);
    }
  }

  @Test
  void refusal_isToldByNextClose_once() throws Exception {
    driver.put("a", "1");
    driver.calls.setAway(new FsException(Errno.ENOTCONN, "away"));
    Opened file =
        driver.mount().open(driver.node("a").inode(), OutputCalls.O_WRONLY, driver.caller());
    assertThatThrownBy(() -> driver.mount().attempt()).isInstanceOf(FsException.class);
    assertThatThrownBy(
            () -> driver.mount().flush(file.node().inode(), file.handle(), driver.caller()))
        .hasMessageContaining("ENOTCONN");
    driver.mount().flush(file.node().inode(), file.handle(), driver.caller());
    driver.calls.setAway(null);
    driver.drainAll();
  }

  /** More names than are cached. */
  private void makeDirectory(String path, int count) throws Exception {
    driver.mkdir(path);
    driver.drainAll();
    for (int i = 0; i < count; i++) {
      driver.calls.makeAtSource(path + "/" + i, "");
    }
  }

  @Test
  @Timeout(20)
  void rename_betweenDirectoriesOfManyNames_ends() throws Exception {
    driver.setKeptNames(100);
    driver.restart();
    makeDirectory("a", 80);
    makeDirectory("b", 80);
    driver.rename("a/1", "b/x", 0);
    driver.drainAll();
    assertThat(driver.sourceTree()).containsKey("b/x").doesNotContainKey("a/1");
  }

  @Test
  @Timeout(20)
  void rmdir_inADirectoryOfManyNames_ends() throws Exception {
    driver.setKeptNames(100);
    driver.restart();
    makeDirectory("a", 120);
    driver.mkdir("a/d");
    driver.drainAll();
    driver.rmdir("a/d");
    driver.drainAll();
    assertThat(driver.sourceTree()).containsKey("a/1").doesNotContainKey("a/d");
  }
}
