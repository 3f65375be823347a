package io.pmfs.writable.mount;

import io.pmfs.metadata.TableStore;
import io.pmfs.tier.DaemonThread;
import io.pmfs.tier.FsException;
import io.pmfs.writable.LocalFiles;
import io.pmfs.writable.Names;
import io.pmfs.writable.Room;
import io.pmfs.writable.Waiting;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableSettings;
import io.pmfs.writable.drain.Committer;
import io.pmfs.writable.drain.Conflicts;
import io.pmfs.writable.drain.Drain;
import io.pmfs.writable.drain.LostData;
import io.pmfs.writable.journal.Change;
import io.pmfs.writable.journal.ChangeRow;
import io.pmfs.writable.journal.Decoder;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The beginning and the end of the kernel's sessions with a writable mount. Used by one thread
 * while nothing else uses the mount.
 */
@SuppressWarnings("try") // What is held is not otherwise used.
public final class Sessions {
  private static final Logger log = LoggerFactory.getLogger(Sessions.class);

  private static final byte[] NODES = "nodes".getBytes(StandardCharsets.US_ASCII);

  /** The number of a node takes the upper bits of a request's number. */
  private static final int MOST_NODES = Short.MAX_VALUE;

  private static final byte[] BOOT = "boot".getBytes(StandardCharsets.US_ASCII);

  private final State state;
  private final Names names;
  private final Room room;
  private final LocalFiles local;
  private final Waiting waiting;
  private final Conflicts conflicts;
  private final Committer committer;
  private final Drain drain;
  private final LostData lost;

  public Sessions(
      State state,
      Names names,
      Room room,
      LocalFiles local,
      Waiting waiting,
      Conflicts conflicts,
      Committer committer,
      Drain drain,
      LostData lost) {
    this.state = state;
    this.names = names;
    this.room = room;
    this.local = local;
    this.waiting = waiting;
    this.conflicts = conflicts;
    this.committer = committer;
    this.drain = drain;
    this.lost = lost;
  }

  /** Continues what a former process, or a former mount, left; then the source gets it. */
  public void begin(WritableSettings settings, byte[] bootId) throws FsException {
    if (!settings.resumed()) {
      lost.checkPlaces();
    }
    room.begin();
    state.scan(
        Tables.CONFLICTS,
        new byte[0],
        (key, value) -> {
          Decoder in = new Decoder(value);
          conflicts.restore(in.name().toString(), in.name().toString(), in.number() != 0);
          return true;
        });
    countWaiting(state.head());
    forgetUnsynced(bootId);
    if (state.beginSession(settings.session().toString(), settings.resumed(), Caller::isHere)) {
      end();
    }
    if (state.waitingCount() > 0) {
      log.info("{} changes wait for the source", state.waitingCount());
    }
    long end = state.firstNumber();
    committer.begin();
    finishSteps();
    drain.start();
    try {
      DaemonThread.start("pmfs-outputs-count", () -> countRoom(end));
    } catch (OutOfMemoryError e) {
      countRoom(end); // What there is decides what may still be written.
    }
  }

  /**
   * Trusts data files only for as long as the machine runs, except those that were synced. A file
   * whose content waits keeps what is left of its data, until the source has that.
   */
  private void forgetUnsynced(byte[] bootId) throws FsException {
    if (Arrays.equals(state.get(Tables.FACTS, BOOT), bootId)) {
      return;
    }
    room.evictAll();
    lost.mendAll();
    drain.whenDone(
        state.head(),
        () -> {
          room.evictAll();
          try (State.Held held = state.hold()) {
            State.Update update = state.update();
            update.put(Tables.FACTS, BOOT, bootId);
            update.commit();
          }
        });
  }

  /** Nothing is open any more: what was written counts as closed, what has no name goes. */
  public void end() throws FsException {
    for (long number : numbers(Tables.NAMELESS)) {
      names.forget(number);
    }
    for (long number : numbers(Tables.WRITING)) {
      try {
        drain.close(number);
      } catch (FsException e) {
        drain.closeLater(number, e);
      }
    }
  }

  /** The number of another node's session, which persists. */
  public int join(UUID session) throws FsException {
    try (State.Held held = state.hold()) {
      byte[] key = ("node " + session).getBytes(StandardCharsets.US_ASCII);
      byte[] there = state.get(Tables.FACTS, key);
      if (there != null) {
        return (int) Tables.first(there);
      }
      byte[] last = state.get(Tables.FACTS, NODES);
      long next = (last == null ? 0 : Tables.first(last)) % MOST_NODES + 1;
      State.Update update = state.update();
      update.put(Tables.FACTS, NODES, Tables.key(next));
      update.put(Tables.FACTS, key, Tables.key(next));
      update.commit();
      return (int) next;
    }
  }

  /** A former process may have made steps at the source that the tables do not have yet. */
  private void finishSteps() {
    try {
      committer.finishRenames();
      Change next = state.change(state.committed() + 1);
      if (next != null && committer.isPerhapsMade(next)) {
        drain.attempt();
      }
    } catch (FsException e) {
      log.info("the source has not taken the next change yet: {}", e.getMessage());
    }
  }

  private void countRoom(long end) {
    try {
      local.count(end, this::isKnownData);
    } catch (FsException | RuntimeException e) {
      log.warn("counting the room of data files: {}", e.getMessage());
    }
  }

  /** Data files that may be removed are counted until they are. */
  private boolean isKnownData(int place, long number, long generation) throws FsException {
    return state.data(number, generation) != null
        || state.get(Tables.COPYING, Tables.key(number, generation)) != null
        || room.isGarbage(number, generation);
  }

  private List<Long> numbers(TableStore.Table table) throws FsException {
    List<Long> found = new ArrayList<>();
    state.scan(
        table,
        new byte[0],
        (key, value) -> {
          found.add(Tables.first(key));
          return true;
        });
    return found;
  }

  private void countWaiting(long head) throws FsException {
    state.scan(
        Tables.JOURNAL,
        new byte[0],
        (key, value) -> {
          Change change = ChangeRow.decode(Tables.first(key), value);
          if (change instanceof Change.Content content) {
            waiting.add(content.size());
          }
          return change.sequence() < head;
        });
  }
}
