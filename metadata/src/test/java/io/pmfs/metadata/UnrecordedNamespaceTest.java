package io.pmfs.metadata;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.table.FaultyDisk;
import io.pmfs.table.RocksFiles;
import io.pmfs.table.StateException;
import java.nio.file.Path;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/** What every namespace does is done while nothing can be written, and recorded afterwards. */
final class UnrecordedNamespaceTest extends NamespaceContract {
  private final FaultyDisk disk = new FaultyDisk();

  @Override
  protected Namespace open(Path directory) {
    RocksNamespace namespace =
        RocksNamespace.open(
            directory.resolve("names"),
            "/data/set",
            RocksFiles.MIN_MEMORY_BYTES,
            UUID.randomUUID(),
            "boot",
            new NumberMark(null, line -> {}),
            line -> {},
            disk);
    disk.failsWrites = true;
    return namespace;
  }

  @Override
  protected void beforeClose(Namespace open) {
    try {
      open.putCounter("last", 1);
    } catch (StateException e) {
      return; // It is closed.
    }
    assertThat(open.failure()).isNotNull();
    disk.works();
    open.recover();
    assertThat(open.failure()).isNull();
  }

  @Test
  @Override
  void reopen_afterClose_raisesSessionAndKeepsEverything() {
    Namespace first = open(directory.resolve("other"));
    Samples.put(first, Samples.root());
    Samples.importAll(first, 1, Samples.file("a", 11));
    beforeClose(first);
    first.close();
    try (Namespace second = open(directory.resolve("other"))) {
      assertThat(second.session()).isEqualTo(2);
      // The tiers are to be compared with the records.
      assertThat(second.stoppedCleanly()).isFalse();
      assertThat(Samples.numberOf(second, 1, "a")).isEqualTo(2);
    }
    disk.failsWrites = true;
  }
}
