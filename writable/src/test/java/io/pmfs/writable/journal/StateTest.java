package io.pmfs.writable.journal;

import static org.assertj.core.api.Assertions.assertThat;

import io.pmfs.posix.FsException;
import io.pmfs.table.TableStore;
import java.nio.file.Path;
import java.time.InstantSource;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StateTest {
  @TempDir Path directory;

  private State open() throws FsException {
    return new State(
        TableStore.open(directory, "test", Tables.ALL, 16L << 20), InstantSource.system());
  }

  /**
   * The next process does not give numbers again, also if an update was left before it was made.
   */
  @Test
  @SuppressWarnings("try")
  void numbers_areGivenOnce() throws Exception {
    long last;
    try (State state = open();
        State.Held held = state.hold()) {
      long first = state.update().newNumber();
      State.Update update = state.update();
      last = update.newNumber();
      update.put(Tables.NAMELESS, Tables.key(last), new byte[0]);
      update.commit();
      assertThat(last).isGreaterThan(first);
    }
    try (State state = open();
        State.Held held = state.hold()) {
      assertThat(state.update().newNumber()).isGreaterThan(last);
    }
  }
}
