package io.pmfs.table;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class SortedTableTest {
  private static final int PAIRS = 300;

  @TempDir private Path directory;

  private Path write() throws IOException {
    Path file = directory.resolve("table");
    try (SortedTable.Writer writer = new SortedTable.Writer(file)) {
      for (int i = 0; i < PAIRS; i++) {
        writer.put(key(2 * i), key(i));
      }
      writer.finish();
    }
    return file;
  }

  private static byte[] key(int number) {
    return "%06d".formatted(number).getBytes(UTF_8);
  }

  @Test
  void get_findsWhatWasPutAndNothingElse() throws Exception {
    try (SortedTable table = SortedTable.open(write(), 1 << 20)) {
      for (int i = 0; i < PAIRS; i++) {
        assertThat(table.get(key(2 * i))).isEqualTo(key(i));
        assertThat(table.get(key(2 * i + 1))).isNull();
      }
      assertThat(table.get(new byte[0])).isNull();
    }
  }

  @Test
  void cursor_goesOnFromTheFirstKeyThatIsNotBelow() throws Exception {
    try (SortedTable table = SortedTable.open(write(), 1 << 20);
        SortedTable.Cursor cursor = table.cursor()) {
      cursor.seek(key(501));
      int count = 0;
      for (; cursor.isValid(); cursor.next()) {
        assertThat(cursor.key()).isEqualTo(key(502 + 2 * count));
        count++;
      }
      assertThat(count).isEqualTo(PAIRS - 251);
    }
  }

  @Test
  void put_keyThatIsNotAbove_isRefused() throws Exception {
    try (SortedTable.Writer writer = new SortedTable.Writer(directory.resolve("t"))) {
      writer.put(key(2), key(0));
      assertThatThrownBy(() -> writer.put(key(1), key(0))).isInstanceOf(IOException.class);
    }
  }

  @Test
  void open_noTable_isAnErrorOfOneLine() throws Exception {
    Path file = directory.resolve("absent");
    assertThatThrownBy(() -> SortedTable.open(file, 1 << 20))
        .isInstanceOf(IOException.class)
        .hasMessageStartingWith(file + ": ")
        .hasMessageNotContaining("\n");
    Files.write(file, new byte[1000]);
    assertThatThrownBy(() -> SortedTable.open(file, 1 << 20)).isInstanceOf(IOException.class);
  }

  @Test
  void open_anyByteDamaged_isAnErrorOrChangesNothing() throws Exception {
    Path file = write();
    byte[] sound = Files.readAllBytes(file);
    List<String> whole = all(file);
    for (int at = 0; at < sound.length; at++) {
      byte[] damaged = sound.clone();
      damaged[at] ^= 1;
      Files.write(file, damaged);
      Throwable thrown = catchThrowable(() -> assertThat(all(file)).isEqualTo(whole));
      if (thrown != null) {
        assertThat(thrown).as("byte %d", at).isInstanceOf(IOException.class);
      }
    }
  }

  private static List<String> all(Path file) throws IOException {
    List<String> pairs = new ArrayList<>();
    try (SortedTable table = SortedTable.open(file, 1 << 20);
        SortedTable.Cursor cursor = table.cursor()) {
      cursor.seek(new byte[0]);
      for (; cursor.isValid(); cursor.next()) {
        pairs.add(new String(cursor.key(), UTF_8) + new String(cursor.value(), UTF_8));
      }
    }
    return pairs;
  }
}
