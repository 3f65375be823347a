package io.pmfs.fs;

import static io.pmfs.source.FaultyStore.Operation.STATUS;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.util.concurrent.Uninterruptibles;
import io.pmfs.posix.Await;
import io.pmfs.source.FaultyStore;
import io.pmfs.tasks.Dataset;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Whether a source that takes long to answer is asked for much at once. */
final class FarSourceTest {
  private static final int FILES = 40;
  private static final int MANY = 1_000;
  private static final Duration FAR = Duration.ofMillis(5);

  @TempDir private Path directory;

  private final AtomicInteger asking = new AtomicInteger();
  private final AtomicInteger mostAtOnce = new AtomicInteger();
  private final Set<String> asked = ConcurrentHashMap.newKeySet();

  private Dataset dataset(int files) throws Exception {
    return new Dataset(
        directory,
        store -> {
          store.directory("d");
          for (int i = 0; i < files; i++) {
            store.file(name(i), i, 10);
          }
        },
        1 << 20);
  }

  private static String name(int file) {
    return "d/f%04d".formatted(file);
  }

  /** Each question takes a while from now on. */
  private void delay(Dataset dataset) {
    asked.clear();
    dataset.faulty.faults(
        (operation, path, offset) -> {
          if (operation == STATUS && path.toString().startsWith("d/")) {
            asked.add(path.toString());
            mostAtOnce.accumulateAndGet(asking.incrementAndGet(), Math::max);
            Uninterruptibles.sleepUninterruptibly(FAR);
            asking.decrementAndGet();
          }
          return FaultyStore.Answer.WHOLE;
        });
  }

  @Test
  void list_ofAFarDirectoryWithFewNames_asksForSeveralAtOnce() throws Exception {
    try (Dataset dataset = dataset(FILES)) {
      delay(dataset);
      assertThat(dataset.names("d")).hasSize(FILES);
      assertThat(asked).hasSize(FILES);
      assertThat(mostAtOnce.get()).isGreaterThan(2);
    }
  }

  @Test
  void inode_ofAllFilesInTheNextSession_comparesSeveralAtOnceAndEachOnce() throws Exception {
    try (Dataset dataset = dataset(FILES)) {
      dataset.readNames();
      dataset.remount(store -> {});
      delay(dataset);
      dataset.inode(name(0));
      assertThat(asked).containsExactly(name(0));
      for (int i = 1; i < FILES; i++) {
        dataset.inode(name(i));
      }
      assertThat(mostAtOnce.get()).isGreaterThan(2);
      awaitQuiet();
      assertThat(dataset.asked().stats()).as("each file, and d").isEqualTo(FILES + 1);
    }
  }

  @Test
  void inode_ofFewFilesInALargeDirectory_asksAheadForFew() throws Exception {
    try (Dataset dataset = dataset(MANY)) {
      dataset.readNames();
      dataset.remount(store -> {});
      delay(dataset);
      for (int i = 0; i < 5; i++) {
        dataset.inode(name(MANY - 1 - i));
      }
      awaitQuiet();
      assertThat(asked).hasSizeBetween(6, 120);
    }
  }

  @Test
  void inode_ofANearSource_asksForNothingElse() throws Exception {
    try (Dataset dataset = dataset(MANY)) {
      dataset.readNames();
      dataset.remount(store -> {});
      for (int i = 0; i < 20; i++) {
        dataset.inode(name(i));
      }
      awaitQuiet();
      // One answer or two may have taken long here, too.
      assertThat(dataset.asked().stats()).isLessThan(MANY / 2);
    }
  }

  private void awaitQuiet() {
    Uninterruptibles.sleepUninterruptibly(FAR.multipliedBy(4));
    Await.until("nothing is asked", () -> asking.get() == 0);
  }
}
