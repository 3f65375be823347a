package io.pmfs.writable.mount;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.google.common.util.concurrent.Uninterruptibles;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.FsException;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Promise: extended attributes stay with their file, whatever becomes of its names, and wherever
 * the committer is.
 */
class ExtendedTest {
  private static final int ROUNDS = 300;
  private static final int NOT_YET = -1000;
  private static final long LOOK_IS_JOINED_MILLIS = 100;

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

  private static void set(Driver driver, long inode, String name) throws Exception {
    driver
        .mount()
        .setExtendedAttribute(
            inode, Driver.name("user." + name), name.getBytes(US_ASCII), 0, driver.caller());
  }

  private static List<String> names(Driver driver, long inode) throws Exception {
    TreeSet<String> names = new TreeSet<>();
    driver.mount().extendedAttributes(inode).keySet().forEach(one -> names.add(one.toString()));
    return new ArrayList<>(names);
  }

  /** An open file whose attributes the source has. */
  private Opened openDrained(String path, String... attributes) throws Exception {
    driver.put(path, "content");
    for (String attribute : attributes) {
      set(driver, driver.node(path).inode(), attribute);
    }
    driver.drainAll();
    return driver.mount().open(driver.node(path).inode(), OutputCalls.O_RDWR, driver.caller());
  }

  @Test
  void openFile_thatLostItsLastName_hasThem() throws Exception {
    Opened file = openDrained("a", "a", "b");
    long inode = file.node().inode();
    set(driver, inode, "c");
    driver.unlink("a");
    set(driver, inode, "d");
    driver.drainAll();
    assertThat(names(driver, inode)).containsExactly("user.a", "user.b", "user.c", "user.d");
    driver.mount().removeExtendedAttribute(inode, Driver.name("user.a"), driver.caller());
    driver.restart();
    assertThat(names(driver, inode)).containsExactly("user.b", "user.c", "user.d");
    driver.mount().release(inode, file.handle());
    driver.mount().forget(inode, 1);
    driver.drainAll();
  }

  @Test
  void openFile_thatAnotherReplaced_hasThem() throws Exception {
    Opened file = openDrained("a", "a");
    driver.put("b", "other");
    driver.rename("b", "a", 0);
    driver.drainAll();
    assertThat(names(driver, file.node().inode())).containsExactly("user.a");
    assertThat(names(driver, driver.node("a").inode())).isEmpty();
  }

  private Opened openAtSourceOnly() throws Exception {
    driver.put("a", "content");
    driver.drainAll();
    driver.reboot();
    return driver.mount().open(driver.node("a").inode(), OutputCalls.O_RDWR, driver.caller());
  }

  @Test
  void openFile_thatOnlyTheSourceHas_keepsItsContent() throws Exception {
    Opened file = openAtSourceOnly();
    driver.unlink("a");
    driver.drainAll();
    assertThat(driver.read(file.node().inode())).isEqualTo("content");
    driver.write(file, 7, "+");
    assertThat(driver.read(file.node().inode())).isEqualTo("content+");
  }

  @Test
  void openFile_thatOnlyTheSourceHas_keepsItsContentWhenAnotherReplacesIt() throws Exception {
    Opened file = openAtSourceOnly();
    driver.put("b", "other");
    driver.rename("b", "a", 0);
    driver.drainAll();
    assertThat(driver.read(file.node().inode())).isEqualTo("content");
    driver.restart();
    assertThatThrownBy(() -> driver.read(file.node().inode()))
        .isInstanceOf(FsException.class)
        .hasMessageContaining("EIO");
  }

  /** The process dies when the source has the rename, and its record does not. */
  @Test
  void openFile_thatOnlyTheSourceHad_isNotTakenForTheOneThatReplacedIt() throws Exception {
    Opened file = openAtSourceOnly();
    driver.put("b", "other");
    driver.setExtended("b", "user.b", "1");
    driver.drainAll();
    driver.rename("b", "a", 0);
    driver.calls.watch(
        new FakeCalls.Watcher() {
          @Override
          public void after(String call, FileName name) {
            if (call.equals("rename")) {
              throw new FakeCalls.Death();
            }
          }
        });
    assertThatThrownBy(driver::drainAll).isInstanceOf(FakeCalls.Death.class);
    driver.calls.watch(new FakeCalls.Watcher() {});
    driver.restart();
    driver.drainAll();
    assertThatThrownBy(() -> driver.read(file.node().inode())).hasMessageContaining("EIO");
    assertThat(names(driver, file.node().inode())).isEmpty();
  }

  /** With the committer's thread beside. */
  @Test
  void file_whoseNamesChange_hasThemAtAnyMoment() throws Exception {
    try (Driver running = new Driver(directory.resolve("running"), 2, InstantSource.system())) {
      for (int round = 0; round < ROUNDS; round++) {
        List<String> expected = new ArrayList<>();
        running.put("f", "x");
        long inode = running.node("f").inode();
        for (int i = 0; i < 4; i++) {
          set(running, inode, "n" + i);
          expected.add("user.n" + i);
        }
        running.rename("f", "g", 0);
        running.link("g", "h");
        assertThat(names(running, inode)).as("round %d", round).isEqualTo(expected);
        running.truncate("g", 0);
        running.put("g", "new");
        assertThat(names(running, inode)).as("round %d", round).isEqualTo(expected);
        running.put("other", "y");
        running.rename("other", "g", 0);
        assertThat(names(running, inode)).as("round %d", round).isEqualTo(expected);
        Opened file = running.mount().open(inode, OutputCalls.O_RDONLY, running.caller());
        set(running, inode, "o");
        running.unlink("h");
        set(running, inode, "p");
        expected.addAll(List.of("user.o", "user.p"));
        while (running.mount().drainStatus().waitingChanges() > 0) {
          assertThat(names(running, inode)).as("round %d", round).isEqualTo(expected);
        }
        assertThat(names(running, inode)).as("round %d", round).isEqualTo(expected);
        running.mount().release(inode, file.handle());
        running.mount().forget(inode, 1);
        running.unlink("g");
      }
    }
  }

  /** A slow answer of the source is older than a change in the mount. */
  @Test
  void value_thatIsSetBackWhileAnOlderLookEnds_isSet() throws Exception {
    AtomicInteger looks = new AtomicInteger(NOT_YET);
    List<CountDownLatch> begun = List.of(new CountDownLatch(1), new CountDownLatch(1));
    List<CountDownLatch> end = List.of(new CountDownLatch(1), new CountDownLatch(1));
    driver.setPause(
        call -> {
          int at = call.equals("extendedAttributes") ? looks.getAndIncrement() : NOT_YET;
          if (at >= 0 && at < begun.size()) {
            begun.get(at).countDown();
            Uninterruptibles.awaitUninterruptibly(end.get(at));
          }
        });
    driver.restart();
    driver.put("a", "content");
    driver.setExtended("a", "user.key", "1");
    driver.drainAll();
    long inode = driver.node("a").inode();
    looks.set(0);
    FutureTask<Void> change = setting("2");
    begun.get(0).await();
    FutureTask<List<String>> reader = start(() -> names(driver, inode));
    begun.get(1).await(1, TimeUnit.SECONDS); // Not if it has waited for the first one.
    end.get(0).countDown();
    change.get();
    Thread.sleep(LOOK_IS_JOINED_MILLIS);
    FutureTask<Void> back = setting("1");
    Thread.sleep(LOOK_IS_JOINED_MILLIS);
    end.get(1).countDown();
    back.get();
    reader.get();
    assertThat(driver.mount().extendedAttribute(inode, Driver.name("user.key")))
        .isEqualTo(new byte[] {'1'});
  }

  private FutureTask<Void> setting(String value) {
    return start(
        () -> {
          driver.setExtended("a", "user.key", value);
          return null;
        });
  }

  private static <T> FutureTask<T> start(Callable<T> work) {
    FutureTask<T> task = new FutureTask<>(work);
    new Thread(task).start();
    return task;
  }
}
