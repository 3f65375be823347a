package io.pmfs.writable.tree;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.table.TableStore;
import io.pmfs.writable.OutputCalls.FileSystem;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import java.nio.file.Path;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class FileSystemsTest {
  private static final long FRESH_MILLIS = 1000;

  @TempDir Path directory;

  private long now = 1_000_000;
  private State state;
  private FileSystems fileSystems;

  @BeforeEach
  void open() throws Exception {
    state =
        new State(
            TableStore.open(directory, "test", Tables.ALL, 16L << 20),
            () -> Instant.ofEpochMilli(now));
    fileSystems = new FileSystems(state, FRESH_MILLIS);
  }

  @AfterEach
  void close() {
    state.close();
  }

  private long number(long device, String... names) throws Exception {
    return fileSystems.number(device, new FileSystem(List.of(names), Set.of(7L, 8L)));
  }

  @Test
  void known_isANumberOfAMomentAgo() throws Exception {
    assertThat(fileSystems.known(7)).isNull();
    number(7, "a");
    now += FRESH_MILLIS - 1;
    assertThat(fileSystems.known(7)).isEqualTo(7);
    now++;
    assertThat(fileSystems.known(7)).isNull();
  }

  @Test
  void number_ofADeviceNumberThatIsTaken_isAnother_andStays() throws Exception {
    number(7, "a");
    long other = number(7, "b");
    assertThat(other).isNotEqualTo(7);
    fileSystems = new FileSystems(state, FRESH_MILLIS);
    assertThat(number(9, "b")).isEqualTo(other);
    assertThat(number(7, "a")).isEqualTo(7);
  }

  @Test
  void number_withoutNames_isTheDeviceNumber_unlessThatIsTaken() throws Exception {
    assertThat(number(7)).isEqualTo(7);
    assertThat(number(7)).isEqualTo(7);
    number(8, "a");
    long other = number(8);
    assertThat(other).isNotEqualTo(8);
    assertThat(number(8)).isEqualTo(other);
  }

  @Test
  void number_byANameOfAMountedFileSystem_isAnother() throws Exception {
    assertThat(number(7, "id on a", "id")).isEqualTo(7);
    assertThat(number(8, "id on b", "id")).isEqualTo(8);
    assertThat(number(7, "id on a", "id")).isEqualTo(7);
  }

  @Test
  void number_byANameOfAFileSystemThatIsGone_isThatOnes() throws Exception {
    assertThat(number(6, "id on a", "id")).isEqualTo(6);
    assertThat(number(8, "id on b", "id")).isEqualTo(6);
  }
}
