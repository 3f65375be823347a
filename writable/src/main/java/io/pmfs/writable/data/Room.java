package io.pmfs.writable.data;

import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.writable.NodeData;
import io.pmfs.writable.journal.DataRow;
import io.pmfs.writable.journal.Decoder;
import io.pmfs.writable.journal.Encoder;
import io.pmfs.writable.journal.Inode;
import io.pmfs.writable.journal.State;
import io.pmfs.writable.journal.Tables;
import io.pmfs.writable.places.DataPlaces;
import io.pmfs.writable.places.LocalPlace;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Semaphore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Makes room for data files: removes obsolete ones, evicts those that the source has too, and makes
 * writers wait for the source. Thread-safe.
 */
@SuppressWarnings("try")
public final class Room {
  private static final Logger log = LoggerFactory.getLogger(Room.class);

  private static final int AT_ONCE = 64;
  private static final long WAIT_MILLIS = 500;

  /** Fewer than the threads that answer requests; further writers write to the source. */
  private static final int MOST_WAITING = 96;

  private final State state;
  private final DataPlaces places;
  private final OutputFiles files;
  private final Semaphore waiting = new Semaphore(MOST_WAITING);
  private final Garbage onTiers = new Garbage(false);
  private final Garbage elsewhere = new Garbage(true);
  private long cleanFrom; // GUARDED_BY(this)

  /** The first key that the present pass over the clean data files has passed by. */
  private long passedBy = Long.MAX_VALUE; // GUARDED_BY(this)

  /** The source's progress when the present pass began. */
  private State.Progress passBegan; // GUARDED_BY(this)

  /** The obsolete data files on tiers of this node, or all others, and how far they are removed. */
  private static final class Garbage {
    final boolean isElsewhere;
    long from; // GUARDED_BY(this)

    Garbage(boolean isElsewhere) {
      this.isElsewhere = isElsewhere;
    }
  }

  private record Item(long key, long number, long generation, int place) {
    byte[] encode() {
      return new Encoder().number(number).number(generation).number(place).toBytes();
    }

    static Item decode(byte[] key, byte[] value) {
      Decoder in = new Decoder(value);
      return new Item(Tables.first(key), in.number(), in.number(), in.small());
    }
  }

  public Room(State state, DataPlaces places, OutputFiles files) {
    this.state = state;
    this.places = places;
    this.files = files;
    this.passBegan = state.progress();
  }

  // ---- obsolete data files

  /** Marks a data file for removal with this update. */
  public static void discard(State.Update update, long number, long generation, int place)
      throws FsException {
    update.delete(Tables.DATA, Tables.key(number, generation));
    garbage(update, number, generation, place);
  }

  public static void garbage(State.Update update, long number, long generation, int place)
      throws FsException {
    long key = update.newNumber();
    update.put(Tables.GARBAGE, Tables.key(key), new Item(key, number, generation, place).encode());
  }

  /** Marks a data file as equal to the source's content since this change. */
  public static void clean(State.Update update, long number, long generation, int place)
      throws FsException {
    long key = update.newNumber();
    update.put(Tables.CLEAN, Tables.key(key), new Item(key, number, generation, place).encode());
  }

  /** Discards the data files that earlier processes were filling: they are incomplete. */
  public void begin() throws FsException {
    List<byte[]> keys = new ArrayList<>();
    List<Integer> places = new ArrayList<>();
    state.scan(
        Tables.COPYING,
        new byte[0],
        (key, value) -> {
          keys.add(key);
          places.add(new Decoder(value).small());
          return true;
        });
    if (keys.isEmpty()) {
      return;
    }
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      for (int i = 0; i < keys.size(); i++) {
        update.delete(Tables.COPYING, keys.get(i));
        garbage(update, Tables.first(keys.get(i)), Tables.second(keys.get(i)), places.get(i));
      }
      update.commit();
    }
  }

  /** Removes some obsolete data files on this node's tiers; returns whether there were any. */
  public boolean collect() throws FsException {
    synchronized (onTiers) {
      return collect(onTiers);
    }
  }

  /** Removes some of the others, which give no room; this may wait for the source. */
  public boolean collectElsewhere() throws FsException {
    synchronized (elsewhere) {
      return collect(elsewhere);
    }
  }

  private boolean collect(Garbage garbage) throws FsException { // GUARDED_BY(garbage)
    List<Item> items = new ArrayList<>();
    long[] next = {garbage.from};
    state.scan(
        Tables.GARBAGE,
        Tables.key(garbage.from),
        (key, value) -> {
          Item item = Item.decode(key, value);
          next[0] = item.key() + 1;
          if (places.isElsewhere(item.place()) == garbage.isElsewhere) {
            items.add(item);
          }
          return items.size() < AT_ONCE;
        });
    if (items.isEmpty()) {
      garbage.from = next[0];
      return false;
    }
    List<Item> removed = new ArrayList<>();
    state.sync(); // After a power failure, the tables must not name what is removed.
    for (Item item : items) {
      try {
        DataRow row = state.data(item.number(), item.generation());
        if (row == null || row.place() != item.place()) {
          places.get(item.place()).remove(new NodeData.Id(item.number(), item.generation()));
        }
        removed.add(item);
      } catch (FsException e) {
        log.debug("cannot remove a data file before the next start: {}", e.getMessage());
      }
    }
    try (State.Held held = state.hold()) {
      State.Update update = state.update();
      for (Item item : removed) {
        update.delete(Tables.GARBAGE, Tables.key(item.key()));
      }
      update.commit();
    }
    garbage.from = next[0];
    state.wake();
    return true;
  }

  /** Whether a data file waits to be removed. Call only before the first write. */
  public boolean isGarbage(long number, long generation) throws FsException {
    boolean[] isFound = {false};
    state.scan(
        Tables.GARBAGE,
        new byte[0],
        (key, value) -> {
          Item item = Item.decode(key, value);
          isFound[0] = item.number() == number && item.generation() == generation;
          return !isFound[0];
        });
    return isFound[0];
  }

  // ---- data files that the source has too

  /**
   * Evicts some data files that the source has too; returns whether it could. Looks at those that
   * it passed by once more if the source has got further, so a call has an end.
   */
  private synchronized boolean evict() throws FsException {
    boolean hasBegunAgain = false;
    while (true) {
      List<Item> items = clean();
      if (items.isEmpty()) {
        if (hasBegunAgain || !beginsAgain()) {
          return false;
        }
        hasBegunAgain = true;
      } else if (evict(items)) {
        return true;
      }
    }
  }

  private boolean evict(List<Item> items) throws FsException { // GUARDED_BY(this)
    boolean isAny = false;
    for (Item item : items) {
      if (evict(item)) {
        isAny = true;
      } else {
        passedBy = Math.min(passedBy, item.key());
      }
    }
    cleanFrom = items.get(items.size() - 1).key() + 1;
    return isAny;
  }

  /** The next data files that the source has too. */
  private List<Item> clean() throws FsException { // GUARDED_BY(this)
    List<Item> items = new ArrayList<>();
    state.scan(
        Tables.CLEAN,
        Tables.key(cleanFrom),
        (key, value) -> {
          items.add(Item.decode(key, value));
          return items.size() < AT_ONCE;
        });
    return items;
  }

  /**
   * Goes back to the files that were passed by, if the source has got further since: it may have
   * all changes of theirs now. Only these are left there; the others lost their rows.
   */
  private boolean beginsAgain() { // GUARDED_BY(this)
    State.Progress now = state.progress();
    if (passedBy == Long.MAX_VALUE || now.equals(passBegan)) {
      return false;
    }
    cleanFrom = passedBy;
    passedBy = Long.MAX_VALUE;
    passBegan = now;
    return true;
  }

  /**
   * Evicts all data files that the source has too. After the machine was restarted, these may be
   * incomplete because they were not synced; the source's files were.
   */
  public void evictAll() throws FsException {
    cleanFrom = 0;
    boolean isMore = true;
    while (isMore) {
      isMore = evict();
    }
    cleanFrom = 0;
  }

  /** Returns whether its row is gone; otherwise the file is in use. */
  private boolean evict(Item item) throws FsException {
    try (OutputFiles.Locked locked = files.tryLock(item.number())) {
      if (locked == null) {
        return false;
      }
      try (State.Held held = state.hold()) {
        Inode inode = state.find(item.number());
        if (inode != null && inode.generation() != item.generation()) {
          inode = null;
        }
        if (inode != null && state.isBusy(inode)) {
          return false; // The content may be at the source already and not wait any more.
        }
        State.Update update = state.update();
        update.delete(Tables.CLEAN, Tables.key(item.key()));
        if (inode != null && inode.hasHome() && inode.drainedSize() == inode.attributes().size()) {
          update.put(inode.withData(0, 0, -1));
          discard(update, item.number(), item.generation(), item.place());
        }
        update.commit();
        return true;
      }
    }
  }

  // ---- room for more

  public Search search() {
    return new Search(state.head());
  }

  /**
   * Finds a place for a data file: the first tier with room or, once the source has everything that
   * waited when the search began, the source. A writer therefore never waits for changes made later
   * by others. The caller holds the file's lock, but not the state's. Used by one thread.
   */
  public final class Search {
    private final long until;

    private Search(long until) {
      this.until = until;
    }

    /** The place for a new data file of this size; waits while there is none. */
    LocalPlace placeFor(long bytes) throws FsException {
      do {
        LocalPlace place = places.withRoom(bytes);
        if (place != null) {
          return place;
        }
      } while (makeRoom());
      return places.atSource();
    }

    /**
     * The place for a file that grows; waits while there is none.
     *
     * @param now its present place
     * @param bytes its present size
     * @param more how many bytes it may grow by
     * @param isRefused whether its place has just refused to take them
     */
    LocalPlace placeFor(LocalPlace now, long bytes, long more, boolean isRefused)
        throws FsException {
      boolean isTried = isRefused;
      while (true) {
        if (!isTried && (more == 0 || now.hasRoom(more))) {
          return now;
        }
        isTried = false;
        if (collect() || evict()) {
          continue;
        }
        LocalPlace other = places.withRoom(bytes + more);
        if (other != null && other != now) {
          return other;
        }
        if (!isAwaited()) {
          return places.atSource();
        }
      }
    }

    /** Frees some room or waits a moment for it; returns false if neither is possible. */
    private boolean makeRoom() throws FsException {
      return collect() || evict() || isAwaited();
    }

    /**
     * Waits a moment for the source; returns false if the source has everything that waited when
     * the search began.
     *
     * @throws FsException with EINTR if the request or its thread is interrupted meanwhile
     */
    private boolean isAwaited() throws FsException {
      long head = state.head();
      long committed = state.committed();
      boolean isOver = committed >= Math.min(until, head) || !places.mayGetRoom();
      if (isOver || !waiting.tryAcquire()) {
        return false;
      }
      try {
        files.tree().looks().checkInterrupted();
        state.awaitChange(head, committed, WAIT_MILLIS);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new FsException(Errno.EINTR, "waiting for room", e);
      } finally {
        waiting.release();
      }
      return true;
    }
  }

  /** Removes the hidden directory of the source if it has no data file. */
  public void tidyAtSource() {
    places.tidyAtSource();
  }
}
