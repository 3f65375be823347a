package io.pmfs.writable.journal;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.pmfs.metadata.FileName;
import io.pmfs.posix.Await;
import io.pmfs.posix.FsException;
import io.pmfs.table.FaultyDisk;
import io.pmfs.table.TableStore;
import java.nio.file.Path;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StateTest {
  private static final int CHANGES = 20_000;

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

  /** A change that is being deferred is not counted twice. */
  @Test
  void waitingCount_whileChangesAreDeferred_staysTheSame() throws Exception {
    try (State state = open()) {
      List<Change> changes = journal(state);
      Thread deferring = new Thread(() -> defer(state, changes), "deferring");
      deferring.start();
      while (deferring.isAlive()) {
        assertThat(state.waitingCount()).isEqualTo(CHANGES);
      }
      assertThat(state.deferred().size()).isEqualTo(CHANGES);
    }
  }

  /** The tables are opened again, and a read of what was deferred fails. */
  @Test
  @SuppressWarnings("try")
  void hold_afterOneThatFailed_knowsAllDeferredChanges() throws Exception {
    FaultyDisk disk = new FaultyDisk();
    TableStore tables = TableStore.open(directory, "test", Tables.ALL, 16L << 20, disk);
    try (State state = new State(tables, InstantSource.system())) {
      defer(state, journal(state));
      disk.failsWrites = true;
      assertThatThrownBy(state::sync).isInstanceOf(FsException.class);
      disk.works();
      Await.until("the tables are open again", () -> syncs(state));
      disk.readsLeft.set(CHANGES + CHANGES / 2); // while the changes themselves are read
      assertThatThrownBy(state::hold).isInstanceOf(FsException.class);
      disk.works();
      try (State.Held held = state.hold()) {
        assertThat(state.deferred().size()).isEqualTo(CHANGES);
      }
    }
  }

  private static boolean syncs(State state) {
    try {
      state.sync();
      return true;
    } catch (FsException e) {
      return false;
    }
  }

  @SuppressWarnings("try")
  private static List<Change> journal(State state) throws FsException {
    List<Change> changes = new ArrayList<>();
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      for (int i = 1; i <= CHANGES; i++) {
        Change.Head head = new Change.Head(i, i, 0, 0, 0);
        Change change = new Change.Link(head, new At(Inode.ROOT, FileName.of("link " + i)));
        update.journal(change);
        changes.add(change);
      }
      update.commit();
    }
    return changes;
  }

  @SuppressWarnings("try")
  private static void defer(State state, List<Change> changes) {
    for (Change change : changes) {
      try (State.Held held = state.hold()) {
        State.Update update = state.update();
        update.defer(change, null);
        update.committed(change.sequence());
        update.commit();
      } catch (FsException e) {
        throw new IllegalStateException(e);
      }
    }
  }
}
