package io.pmfs.metadata;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.table.RocksFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class RecordedCopiesTest {
  @TempDir private Path state;

  private void makeState() {
    try (RocksNamespace namespace = Samples.open(state, "/data/set", RocksFiles.MIN_MEMORY_BYTES)) {
      Samples.put(namespace, Samples.root());
    }
  }

  /** Files of the state that this process has open. */
  private List<String> open() throws IOException {
    try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
      return files
          .map(RecordedCopiesTest::target)
          .filter(target -> target.startsWith(state.toString()))
          .toList();
    }
  }

  private static String target(Path file) {
    try {
      return Files.readSymbolicLink(file).toString();
    } catch (IOException e) {
      return ""; // closed meanwhile
    }
  }

  @Test
  void read_stateOfThisDataset_isOpenUntilClosed() throws IOException {
    makeState();
    try (RecordedCopies copies = RecordedCopies.read(state, "/data/set")) {
      assertThat(copies).isNotNull();
      assertThat(open()).isNotEmpty();
    }
    assertThat(open()).isEmpty();
  }

  @Test
  void read_stateOfAnotherDataset_leavesNothingOpen() throws IOException {
    makeState();
    assertThat(RecordedCopies.read(state, "/data/other")).isNull();
    assertThat(open()).isEmpty();
  }

  /** Damage in the first block of each table, where the superblock is, is found only by reading. */
  @Test
  void read_damagedState_leavesNothingOpen() throws IOException {
    makeState();
    try (Stream<Path> files = Files.list(state)) {
      for (Path file : files.filter(file -> file.toString().endsWith(".sst")).toList()) {
        byte[] bytes = Files.readAllBytes(file);
        bytes[5] ^= 1;
        Files.write(file, bytes);
      }
    }
    assertThat(RecordedCopies.read(state, "/data/set")).isNull();
    assertThat(open()).isEmpty();
  }
}
