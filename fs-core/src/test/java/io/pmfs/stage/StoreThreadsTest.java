package io.pmfs.stage;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.metadata.Inode;
import io.pmfs.posix.Await;
import io.pmfs.stage.copies.EvictionPolicy;
import io.pmfs.stage.copies.Share;
import io.pmfs.stage.formats.Compression;
import java.nio.file.Path;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Which threads get only the processor time that is left. */
final class StoreThreadsTest {
  private final Set<String> background = ConcurrentHashMap.newKeySet();

  @TempDir private Path directory;

  @SuppressWarnings("NullAway.Init")
  StoreThreadsTest() {}

  /** Readers need the memory that storing gives back; compressing takes too long for that. */
  @ParameterizedTest
  @ValueSource(strings = {"none", "zstd:1", "auto:1"})
  void storeThreads_areInTheBackgroundOnlyIfTheyCompress(String compression) throws Exception {
    try (Stage stage = new Stage(directory, 1L << 30).with(Compression.parse(compression))) {
      Inode inode = stage.file("f", 1, 5000);
      stage.stager.close();
      stage.stager =
          new Stager(
              stage.namespace,
              stage.source,
              stage.copies,
              EvictionPolicy.NONE,
              Stage.SETTINGS,
              Share.ALL,
              Lenders.none(),
              () -> background.add(Thread.currentThread().getName().replaceAll("-.*", "")));
      stage.read(inode);
      stage.awaitIdle();
      assertThat(stage.stager.status().completed()).isEqualTo(1);
      Await.until("the fetch threads have begun", () -> background.contains("fetch"));
      assertThat(background.contains("store")).isEqualTo(!compression.equals("none"));
    }
  }
}
