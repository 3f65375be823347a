package io.pmfs.writable.mount;

import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.FsException;
import io.pmfs.table.TableStore;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.WritableFileSystem.Caller;
import io.pmfs.writable.WritableSettings;
import io.pmfs.writable.data.OutputData;
import io.pmfs.writable.drain.Drain;
import io.pmfs.writable.journal.Decoder;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import io.pmfs.writable.places.LocalPlace;
import io.pmfs.writable.tree.OutputTree;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Starts and ends the kernel's sessions with a writable mount. Used by one thread while nothing
 * else uses the mount.
 */
@SuppressWarnings("try")
public final class Sessions {
  private static final Logger log = LoggerFactory.getLogger(Sessions.class);

  private static final byte[] NODES = "nodes".getBytes(StandardCharsets.US_ASCII);

  /** The session number of a node is in the upper bits of a request number. */
  private static final int MOST_NODES = Short.MAX_VALUE;

  private static final byte[] BOOT = "boot".getBytes(StandardCharsets.US_ASCII);
  private static final byte[] MENDED = "mended".getBytes(StandardCharsets.US_ASCII);

  private final State state;
  private final OutputTree tree;
  private final OutputData data;
  private final Drain drain;

  public Sessions(State state, OutputTree tree, OutputData data, Drain drain) {
    this.state = state;
    this.tree = tree;
    this.data = data;
    this.drain = drain;
  }

  /** Continues after an earlier process or an earlier mount, and starts the drain. */
  public void begin(WritableSettings settings, byte[] bootId) throws FsException {
    if (!settings.resumed()) {
      drain.lost().checkPlaces();
    }
    data.room().begin();
    state.scan(
        Tables.CONFLICTS,
        new byte[0],
        (key, value) -> {
          Decoder in = new Decoder(value);
          drain.conflicts().restore(in.name().toString(), in.name().toString(), in.number() != 0);
          return true;
        });
    forgetUnsynced(settings.resumed(), bootId);
    if (state.beginSession(settings.session().toString(), settings.resumed(), Caller::isHere)) {
      end();
    } else {
      drain.unclosed().addFormer(numbers(Tables.WRITING));
      if (state.get(Tables.FACTS, NODES) != null) {
        data.handles().addFormer(numbers(Tables.NAMELESS));
      }
    }
    if (state.waitingCount() > 0) {
      log.info("{} changes wait for the source", state.waitingCount());
    }
    long end = state.firstNumber();
    drain.begin();
    drain.start();
    try {
      DaemonThread.start("pmfs-outputs-count", () -> countRoom(end));
    } catch (OutOfMemoryError e) {
      countRoom(end); // The data files that exist determine how much may still be written.
    }
  }

  /**
   * Drops data files that may be incomplete after a restart of the machine. A file with a waiting
   * content keeps what is left of its data until the source has it.
   */
  private void forgetUnsynced(boolean resumed, byte[] bootId) throws FsException {
    if (Arrays.equals(state.get(Tables.FACTS, BOOT), bootId)) {
      return;
    }
    data.room().evictAll();
    drain.lost().mendAll(!resumed && !Arrays.equals(state.get(Tables.FACTS, MENDED), bootId));
    put(MENDED, bootId);
    drain.whenDone(
        state.head(),
        () -> {
          data.room().evictAll();
          put(BOOT, bootId);
        });
  }

  private void put(byte[] fact, byte[] value) throws FsException {
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      update.put(Tables.FACTS, fact, value);
      update.commit();
    }
  }

  /** Closes everything that was open: written files count as closed, unlinked ones are removed. */
  public void end() throws FsException {
    for (long number : numbers(Tables.NAMELESS)) {
      tree.names().forget(number);
    }
    for (long number : numbers(Tables.WRITING)) {
      try {
        drain.unclosed().close(number);
      } catch (FsException e) {
        drain.unclosed().closeLater(number, e);
      }
    }
  }

  /** The persistent number of another node's session. */
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

  private void countRoom(long end) {
    try {
      data.places().count(end, this::isKnownData);
    } catch (FsException | RuntimeException e) {
      log.warn("counting the room of data files: {}", e.getMessage());
    }
  }

  /** Obsolete data files count until they are removed. */
  private boolean isKnownData(LocalPlace place, NodeData.Id id) throws FsException {
    return state.data(id.inode(), id.generation()) != null
        || state.get(Tables.COPYING, Tables.key(id.inode(), id.generation())) != null
        || data.room().isGarbage(id.inode(), id.generation());
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
}
