package io.pmfs.table;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.rocksdb.RocksDBException;

/** A state whose disk has no room when it is opened. */
final class FullDiskTest {
  private static final Faults FULL =
      new Faults() {
        @Override
        public void beforeRead() throws RocksDBException {
          throw new RocksDBException(
              "While appending to file: 000004.log: No space left on device");
        }

        @Override
        public void beforeWrite() {}
      };

  @Test
  void open_fullDisk_saysSoAndWhatToDo(@TempDir Path directory) {
    Path state = directory.resolve("state");

    assertThatThrownBy(
            () ->
                RocksFiles.open(state, List.of(Family.values()), RocksFiles.MIN_MEMORY_BYTES, FULL))
        .isInstanceOf(StateException.class)
        .hasMessage(
            "no room on the disk of " + state + "; free some, or choose another --state-dir");
  }
}
