package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.TemporaryNames;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Small new files get their names together, and each is looked at for itself when that fails. */
class NewFilesTest {
  private static final int FILES = 8;

  @TempDir Path directory;

  private Driver driver;

  @BeforeEach
  void open() throws Exception {
    driver = new Driver(directory);
    driver.mkdir("d");
    driver.drainAll();
    for (int i = 0; i < FILES; i++) {
      driver.put("d/f" + i, "content " + i);
    }
  }

  @AfterEach
  void close() {
    driver.close();
  }

  private void assertAllAreThere() throws FsException {
    for (int i = 0; i < FILES; i++) {
      assertThat(driver.sourceTree()).containsEntry("d/f" + i, "file 644 content " + i);
    }
    assertThat(driver.mount().drainStatus().waitingChanges()).isZero();
  }

  @Test
  void directories_areSyncedAndGetTheirTimesOnceForAllOfThem() throws Exception {
    driver.put("top", "beside");
    List<String> calls = new ArrayList<>();
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) {
            calls.add(call);
          }
        });
    driver.drainAll();
    assertAllAreThere();
    assertThat(calls).filteredOn("sync"::equals).hasSize(FILES + 1 + 2);
    // Not before the last one has its name.
    assertThat(calls.lastIndexOf("sync")).isGreaterThan(calls.lastIndexOf("rename"));
    assertThat(calls).filteredOn("utimes"::equals).hasSize(FILES + 1 + 2);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, FILES})
  void death_afterSomeHaveTheirNames_isNoConflict(int names) throws Exception {
    int[] count = {0};
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void after(String call, FileName name) {
            if (call.equals("rename") && ++count[0] == names) {
              throw new FakeCalls.Death();
            }
          }
        });
    try {
      driver.drainAll();
    } catch (FakeCalls.Death e) {
      driver.calls.watch(new FakeCalls.Watcher() {});
    }
    assertThat(count[0]).isEqualTo(names);
    driver.restart();
    driver.drainAll();
    assertAllAreThere();
    assertThat(driver.sourceTree()).hasSize(FILES + 1);
    assertThat(driver.mount().drainStatus().conflicts()).isZero();
  }

  /**
   * A copy that had its proof, but no name yet, is made anew. Its number at the source is another
   * file's then, and not the node's.
   */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void numberOfACopyThatWasRemoved_mayBeAnothers(boolean isDeath) throws Exception {
    driver.calls.watch(
        new FakeCalls.Watcher() {
          private boolean isTried;

          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals("rename") && name.equals(Driver.name("f3")) && !isTried) {
              isTried = true;
              if (isDeath) {
                throw new FakeCalls.Death();
              }
              throw new FsException(Errno.EBUSY, "f3");
            }
          }

          @Override
          public void after(String call, FileName name) {
            if (call.equals("unlink") && TemporaryNames.contains(name)) {
              driver.calls.makeAtSource("d/other of " + name, "of another program");
            }
          }
        });
    try {
      driver.drainAll();
    } catch (FakeCalls.Death e) {
      driver.restart();
      driver.drainAll();
    }
    Map<String, String> shown = driver.tree();
    assertThat(shown).hasSizeGreaterThan(FILES + 1).isEqualTo(driver.sourceTree());
    assertAllAreThere();
    assertThat(driver.names("d").stream().map(this::number)).doesNotHaveDuplicates();
  }

  private long number(String name) {
    try {
      return driver.node("d/" + name).inode();
    } catch (FsException e) {
      throw new AssertionError(name, e);
    }
  }

  @Test
  void nameThatAnotherProgramUses_isAConflictOfThatFileAlone() throws Exception {
    int root = driver.calls.openRoot(Driver.SOURCE);
    int there = driver.calls.openDirectory(root, Driver.name("d"));
    int flags = OutputCalls.O_CREAT | OutputCalls.O_WRONLY;
    int file = driver.calls.open(there, Driver.name("f3"), flags, 0644);
    driver.calls.write(file, Driver.bytes("theirs"), 0);
    driver.calls.close(file);
    driver.calls.close(there);
    driver.calls.close(root);
    driver.drainAll();
    assertThat(driver.sourceTree())
        .hasSize(FILES + 2)
        .containsEntry("d/f3", "file 644 theirs")
        .containsEntry("d/f3.pmfs-conflict-node1-1", "file 644 content 3")
        .containsEntry("d/f7", "file 644 content 7");
    assertThat(driver.mount().drainStatus().conflicts()).isOne();
  }

  @Test
  void refusal_concernsTheFileThatIsRefused() throws Exception {
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void before(String call, FileName name) throws FsException {
            if (call.equals("rename") && name.equals(Driver.name("f3"))) {
              throw new FsException(Errno.EPERM, "f3");
            }
          }
        });
    driver.drainAll();
    assertThat(driver.sourceTree()).containsKeys("d/f2", "d/f4", "d/f7").doesNotContainKey("d/f3");
    assertThat(driver.mount().drainStatus().waitingChanges()).isOne();
    driver.calls.watch(new FakeCalls.Watcher() {});
    driver.mount().retry(FileName.of(""));
    driver.drainAll();
    assertAllAreThere();
    assertThat(driver.mount().drainStatus().conflicts()).isZero();
  }

  /** The kernel asks for a new file under a name that another node just gave to something else. */
  @Test
  void nameThatIsNoFileAnyMore_isLookedUpAgain() throws Exception {
    driver.mknod("fifo", 0010644);
    driver.mkdir("directory");
    driver.symlink("fifo", "link");
    for (String name : List.of("fifo", "directory", "link")) {
      assertThatThrownBy(() -> driver.create(name)).hasMessageContaining("ESTALE");
    }
  }

  /** The kernel has checked only whether the caller may write to the directory. */
  @Test
  void fileThatTheCallerMayNotOpen_isNotOpenedAsANewOne() throws Exception {
    driver.user.set(1);
    driver.put("private", "content");
    driver.chmod("private", 0400);
    for (int uid : new int[] {1, 2}) {
      driver.user.set(uid);
      for (int flags : new int[] {OutputCalls.O_WRONLY, OutputCalls.O_TRUNC, OutputCalls.O_RDWR}) {
        assertThatThrownBy(() -> create("private", flags)).hasMessageContaining("ESTALE");
      }
    }
    assertThatThrownBy(() -> create("private", OutputCalls.O_RDONLY))
        .hasMessageContaining("ESTALE");
    driver.user.set(1);
    driver.close(create("private", OutputCalls.O_RDONLY));
    assertThat(driver.tree()).containsEntry("private", "file 400 content");
  }

  private Opened create(String name, int flags) throws FsException {
    int all = OutputCalls.O_CREAT | flags;
    return driver.mount().create(1, Driver.name(name), 0644, all, driver.caller());
  }

  /** One of two programs that create a name at once gets the file that the other one creates. */
  @Test
  void fileThatTwoCreateAtOnce_isWrittenByBoth() throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(2);
    try {
      for (int i = 0; i < 1000; i++) {
        String name = "new" + i;
        CyclicBarrier start = new CyclicBarrier(2);
        Callable<Void> program =
            () -> {
              start.await();
              Opened file = driver.create(name);
              driver.write(file, 0, "text");
              driver.close(file);
              return null;
            };
        for (Future<Void> each : threads.invokeAll(List.of(program, program))) {
          each.get();
        }
      }
    } finally {
      threads.shutdownNow();
    }
  }
}
