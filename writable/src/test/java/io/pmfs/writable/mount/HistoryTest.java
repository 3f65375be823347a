package io.pmfs.writable.mount;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.FileType;
import io.pmfs.posix.FsException;
import io.pmfs.posix.Requested;
import io.pmfs.writable.OutputCalls;
import io.pmfs.writable.WritableFileSystem;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Promise: the source always shows an earlier state of the mount. Random changes are made and
 * brought to the source in random pieces, with restarts in between; after every call that changes
 * the source, it is compared with all states that the mount had. New content comes to the names of
 * one file in turn: meanwhile each has the version before or the new one, and all else is equal.
 */
class HistoryTest {
  private static final int CHANGES = 250;

  @TempDir Path directory;

  private final List<Map<String, String>> history = new ArrayList<>();

  /** Of each state, the inode numbers of files with several names. */
  private final List<Map<String, Long>> shared = new ArrayList<>();

  private int reached;
  private Map<String, String> shown = Map.of();
  private final RandomChanges changes = new RandomChanges();
  private int callsToLive = -1;

  @ParameterizedTest
  @ValueSource(
      longs = {
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
        26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40
      })
  void source_afterEachStep_isAnEarlierState(long seed) throws Exception {
    Requested.assume("large", seed <= 6, "more random operations");
    Random random = new Random(seed);
    try (Driver driver = new Driver(directory)) {
      if (seed % 2 == 0) {
        prepare(driver);
      }
      remember(driver);
      driver.calls.watch(
          new FakeCalls.Watcher() {
            @Override
            public void before(String call, FileName name) {
              die(2);
            }

            @Override
            public void after(String call, FileName name) {
              check(driver, seed, call + " " + name);
              die(1);
            }
          });
      for (int i = 0; i < CHANGES; i++) {
        changes.make(driver, random);
        remember(driver);
        if (random.nextInt(4) == 0) {
          callsToLive = random.nextInt(3) == 0 ? random.nextInt(40) : -1;
          steps(driver, random.nextInt(8));
          callsToLive = -1;
        }
        if (random.nextInt(25) == 0) {
          driver.restart();
        }
        if (seed % 2 == 0 && changes.open.isEmpty() && random.nextInt(40) == 0) {
          driver.remount();
        }
      }
      for (String path : List.copyOf(changes.open.keySet())) {
        driver.close(Objects.requireNonNull(changes.open.remove(path)));
        remember(driver);
      }
      driver.drainAll();
      driver.mount().tidy();
      assertThat(driver.sourceTree()).as("seed %d", seed).isEqualTo(driver.tree());
      assertThat(driver.sourceTimes()).as("seed %d", seed).isEqualTo(driver.times());
      assertThat(driver.temporaries()).isEmpty();
      assertThat(driver.mount().drainStatus().conflicts()).isZero();
      assertThat(driver.mount().drainStatus().dirtyBytes()).isZero();
    }
  }

  /** The source has files with several names before it is mounted. */
  private static void prepare(Driver driver) throws FsException {
    int root = driver.calls.openRoot(Driver.SOURCE);
    driver.calls.mkdir(root, Driver.name("d"), 0755);
    int inside = driver.calls.openDirectory(root, Driver.name("d"));
    for (String name : RandomChanges.FILES) {
      int file = driver.calls.open(root, Driver.name(name), OutputCalls.O_CREAT, 0644);
      driver.calls.write(file, Driver.bytes("old " + name), 0);
    }
    driver.calls.link(root, Driver.name("a"), inside, Driver.name("a"));
    driver.calls.link(root, Driver.name("a"), inside, Driver.name("b"));
    driver.calls.link(root, Driver.name("b"), inside, Driver.name("c"));
  }

  private void remember(Driver driver) throws FsException {
    Map<String, String> now = driver.tree();
    removeOpen(now);
    Map<String, Long> numbers = new HashMap<>();
    for (String path : now.keySet()) {
      WritableFileSystem.Node node = driver.node(path);
      if (node.attributes().type() == FileType.REGULAR && node.attributes().linkCount() > 1) {
        numbers.put(path, node.inode());
      }
    }
    history.add(now);
    shared.add(numbers);
  }

  /** The process dies before or after a call at the source. */
  private void die(int remainder) {
    if (callsToLive >= 0 && callsToLive-- % 3 == remainder && callsToLive < 3) {
      callsToLive = -1;
      changes.log.append("death\n");
      throw new FakeCalls.Death();
    }
  }

  private void steps(Driver driver, int count) throws FsException {
    Map<String, Instant> times = driver.times();
    takeSteps(driver, count);
    assertThat(driver.times())
        .as("what the mount shows; changes:%n%s", changes.log)
        .isEqualTo(times);
  }

  private void takeSteps(Driver driver, int count) throws FsException {
    try {
      for (int steps = count; steps > 0 && driver.mount().step(); steps--) {
        driver.mount().tidy();
      }
    } catch (FakeCalls.Death e) {
      driver.restart();
    }
  }

  /** What was never closed is not part of a state: the source gets it with the close. */
  private void removeOpen(Map<String, String> tree) {
    changes.open.keySet().forEach(tree::remove);
  }

  private void check(Driver driver, long seed, String call) {
    Map<String, String> now = driver.sourceTree();
    for (int i = reached; i < history.size(); i++) {
      if (isState(now, i)) {
        reached = i;
        shown = now;
        return;
      }
    }
    for (int i = reached + 1; i < history.size(); i++) {
      if (isBetweenNames(now, i)) {
        return;
      }
    }
    throw new AssertionError(
        "seed %d: after %s the source shows %s, which is no state from %d on; changes:%n%s"
            .formatted(seed, call, now, reached, changes.log));
  }

  /** A file that is appended to may be between two states. */
  private boolean isState(Map<String, String> now, int index) {
    Map<String, String> state = history.get(index);
    if (!now.keySet().equals(state.keySet())) {
      return false;
    }
    for (Map.Entry<String, String> entry : now.entrySet()) {
      String wanted = String.valueOf(state.get(entry.getKey()));
      if (!entry.getValue().equals(wanted) && !isBetween(entry, wanted, index)) {
        return false;
      }
    }
    return true;
  }

  /** Whether some names of one file still have what the source showed before. */
  private boolean isBetweenNames(Map<String, String> now, int index) {
    Map<String, String> state = history.get(index);
    List<String> behind =
        now.keySet().stream()
            .filter(path -> !Objects.equals(now.get(path), state.get(path)))
            .toList();
    List<Long> files = behind.stream().map(shared.get(index)::get).distinct().toList();
    return now.keySet().equals(state.keySet())
        && files.size() == 1
        && files.get(0) != null
        && behind.stream().allMatch(path -> Objects.equals(now.get(path), shown.get(path)));
  }

  private boolean isBetween(Map.Entry<String, String> entry, String before, int index) {
    if (!entry.getValue().startsWith(before)) {
      return false;
    }
    for (int i = index + 1; i < history.size(); i++) {
      String later = String.valueOf(history.get(i).get(entry.getKey()));
      if (later.startsWith(entry.getValue())) {
        return true;
      }
    }
    return false;
  }
}
