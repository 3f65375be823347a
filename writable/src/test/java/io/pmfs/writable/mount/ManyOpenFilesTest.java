package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.util.concurrent.Futures;
import io.pmfs.writable.WritableFileSystem.Opened;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** More files are open than the process may have descriptors for. */
class ManyOpenFilesTest {
  private static final int FILES = 50;
  private static final int ROUNDS = 4;
  private static final int MOST = 5;

  @TempDir Path directory;

  @Test
  void write_toMoreFilesThanMayBeOpen_keepsFewOpenAndLosesNothing() throws Exception {
    try (Driver driver = new Driver(directory)) {
      driver.calls.mostDataFiles = MOST;
      driver.remount();
      List<Opened> files = new ArrayList<>();
      for (int i = 0; i < FILES; i++) {
        files.add(driver.create("f" + i));
      }
      int most = 0;
      for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < FILES; i++) {
          driver.write(files.get(i), 2L * round, round + "" + i % 10);
          most = Math.max(most, driver.calls.openDataFiles());
        }
      }
      assertThat(most).isEqualTo(MOST);
      Map<String, String> wanted = driver.tree();
      assertThat(wanted.get("f17")).contains("07172737");
      files.forEach(file -> close(driver, file));
      driver.drainAll();
      assertThat(driver.sourceTree()).isEqualTo(wanted);
    }
  }

  /** The source gets the first bytes while the data file is opened again to overwrite them. */
  @Test
  void write_whileTheSourceGetsTheBytesBefore_reachesTheSource() throws Exception {
    AtomicReference<FutureTask<Boolean>> atOpen = new AtomicReference<>();
    try (Driver driver = new Driver(directory)) {
      driver.calls.mostDataFiles = 1;
      driver.setPause(
          call -> {
            FutureTask<Boolean> step = call.equals("open") ? atOpen.getAndSet(null) : null;
            if (step != null) {
              new Thread(step).start();
              assertThat(Futures.getUnchecked(step)).isTrue();
            }
          });
      driver.remount();
      Opened file = driver.create("a");
      driver.write(file, 0, "0123456789");
      driver.mount().flush(file.node().inode(), file.handle(), driver.caller());
      driver.write(file, 10, "abc");
      driver.put("b", "other");
      atOpen.set(new FutureTask<>(() -> driver.mount().step()));
      driver.write(file, 0, "new");
      assertThat(atOpen.get()).isNull();
      assertThat(driver.sourceTree()).containsEntry("a", "file 644 0123456789");
      driver.close(file);
      driver.drainAll();
      assertThat(driver.sourceTree()).containsEntry("a", "file 644 new3456789abc");
    }
  }

  private static void close(Driver driver, Opened file) {
    try {
      driver.close(file);
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }
}
