package io.pmfs.table;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.table.TableStore.Table;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.rocksdb.RocksDBException;

class TableStoreTest {
  private static final Table ONE = new Table("one", false);
  private static final Table TWO = new Table("two", true);
  private static final List<Table> ALL = List.of(ONE, TWO);
  private static final long MEMORY = RocksFiles.MIN_MEMORY_BYTES;
  private static final long MORE_THAN_A_PAUSE_MILLIS = 1100;

  @TempDir Path directory;

  private final FaultyDisk disk = new FaultyDisk();

  private TableStore open(String owner) {
    return TableStore.open(directory.resolve("state"), owner, ALL, MEMORY, disk);
  }

  private static byte[] bytes(String text) {
    return text.getBytes(US_ASCII);
  }

  private static void put(TableStore store, Table table, String key, String value) {
    TableStore.Changes changes = new TableStore.Changes();
    changes.put(table, bytes(key), bytes(value));
    store.apply(changes);
  }

  @Test
  void changes_afterReopening_areThere() {
    try (TableStore store = open("me")) {
      put(store, ONE, "a", "1");
      put(store, TWO, "12345678x", "2");
    }
    try (TableStore store = open("me")) {
      assertThat(store.get(ONE, bytes("a"))).isEqualTo(bytes("1"));
      assertThat(store.get(ONE, bytes("b"))).isNull();
      List<String> keys = new ArrayList<>();
      store.scanGroup(TWO, bytes("12345678"), (key, value) -> keys.add(new String(key, US_ASCII)));
      assertThat(keys).containsExactly("12345678x");
    }
  }

  @Test
  void open_ofAnothersDirectory_isRefused() {
    open("me").close();
    assertThatThrownBy(() -> open("you"))
        .isInstanceOf(StateException.class)
        .hasMessageContaining("belongs to me, not to you");
    open("me").close();
  }

  @Test
  void open_ofDirectoryInUse_isRefused() {
    try (TableStore store = open("me")) {
      assertThat(store.openings()).isEqualTo(1);
      assertThatThrownBy(() -> open("me"))
          .isInstanceOfSatisfying(StateException.class, e -> assertThat(e.isInUse()).isTrue());
    }
  }

  /** A disk that is full as long as the reserve takes its room, and then has only that. */
  private final class Full implements Faults {
    volatile boolean isFull;

    @Override
    public void beforeWrite() throws RocksDBException {
      if (isFull && Files.exists(directory.resolve("state/reserve"))) {
        throw new RocksDBException("While appending to file: No space left on device");
      }
    }
  }

  private static void add(TableStore store, String key) {
    TableStore.Changes changes = new TableStore.Changes();
    changes.add();
    changes.put(ONE, bytes(key), bytes(key));
    store.apply(changes);
  }

  @Test
  void changes_onFullDisk_useTheReserve_unlessTheyAdd() throws Exception {
    Full full = new Full();
    try (TableStore store = TableStore.open(directory.resolve("state"), "me", ALL, MEMORY, full)) {
      put(store, ONE, "a", "1");
      full.isFull = true;
      assertThatThrownBy(() -> put(store, ONE, "a", "2")).isInstanceOf(StateException.class);
      Thread.sleep(MORE_THAN_A_PAUSE_MILLIS);
      put(store, ONE, "a", "3");
      assertThat(store.failure()).isNull();
      assertThatThrownBy(() -> add(store, "b"))
          .isInstanceOf(StateException.class)
          .hasMessageContaining("No space left on device");
      assertThat(store.shortage()).contains("No space left on device");
      put(store, ONE, "a", "4");
      assertThat(store.get(ONE, bytes("a"))).isEqualTo(bytes("4"));

      full.isFull = false;
      Thread.sleep(MORE_THAN_A_PAUSE_MILLIS);
      add(store, "b");
      assertThat(store.shortage()).isNull();
      assertThat(directory.resolve("state/reserve")).hasSize(Reserve.BYTES);
    }
  }

  @Test
  void changes_onFullDisk_failAndWorkAgainLater() throws Exception {
    try (TableStore store = open("me")) {
      put(store, ONE, "a", "1");
      disk.failsWrites = true;
      assertThatThrownBy(() -> put(store, ONE, "b", "2")).isInstanceOf(StateException.class);
      assertThat(store.failure()).isNotNull();
      assertThat(store.get(ONE, bytes("a"))).isEqualTo(bytes("1"));
      disk.works();
      long end = System.nanoTime() + 10_000_000_000L;
      while (store.failure() != null && System.nanoTime() < end) {
        Thread.sleep(MORE_THAN_A_PAUSE_MILLIS / 10);
        try {
          put(store, ONE, "b", "3");
        } catch (StateException e) {
          assertThat(store.failure()).isNotNull();
        }
      }
      assertThat(store.get(ONE, bytes("b"))).isEqualTo(bytes("3"));
      assertThat(store.get(ONE, bytes("a"))).isEqualTo(bytes("1"));
    }
  }
}
