package io.pmfs.metadata;

import io.pmfs.table.Change;
import io.pmfs.table.Family;
import io.pmfs.table.RocksStore;
import io.pmfs.table.StateException;
import io.pmfs.table.StoreFailure;
import java.io.IOException;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.UUID;
import java.util.function.Consumer;

/**
 * The session of a namespace, and its openings of the state: the first one, and one after each
 * failure of the state's disk. It records them in the state and decides which data of the state is
 * still valid. {@link #opening} and {@link #session} may be called by any thread; everything else
 * is called while no other call of the namespace runs.
 */
final class StateSession {
  /**
   * While the state is unknown, numbers are assigned from here on, above all numbers that the state
   * may contain.
   */
  private static final long UNRECORDED = 1L << 32;

  private static final int UNRECORDED_EACH_HOUR_SHIFT = 16;
  private static final Instant UNRECORDED_SINCE = Instant.parse("2026-01-01T00:00:00Z");

  private final StateDirectory directory;
  private final UUID id;
  private final String bootId;
  private final Consumer<String> log;
  private final long firstNumber;
  private final boolean stoppedCleanly;
  private volatile int opening;
  private volatile int session;

  /** The last opening according to the state. */
  private long recordedOpening;

  /**
   * A session whose state was just opened.
   *
   * @param id its identity; if the last opening was of the same session, that session continues
   * @param bootId of the machine's boot; empty if not known
   * @param mark bound of the inode numbers that the session assigned already
   * @param log receives a line for each problem
   */
  StateSession(
      StateDirectory directory,
      StateDirectory.Found found,
      UUID id,
      String bootId,
      long mark,
      Consumer<String> log) {
    this.directory = directory;
    this.id = id;
    this.bootId = bootId;
    this.log = log;
    recordedOpening = found.opening();
    opening = Math.toIntExact(found.opening() + 1);
    FileName last = found.session();
    boolean goesOn = last != null && last.equals(openingOf(id, found.opening()));
    session = goesOn ? Math.toIntExact(found.sessionStart()) : opening;
    long first = found.store() == null ? unrecorded(Instant.now()) : found.next();
    firstNumber = Math.max(first, mark);
    stoppedCleanly = found.store() != null && isClean(found, bootId);
  }

  private static long unrecorded(Instant now) {
    long hours = Math.max(0, Duration.between(UNRECORDED_SINCE, now).toHours());
    return UNRECORDED + (hours << UNRECORDED_EACH_HOUR_SHIFT);
  }

  private static boolean isClean(StateDirectory.Found found, String bootId) {
    FileName boot = found.boot();
    return found.opening() == 0
        || (boot != null && !bootId.isEmpty() && boot.equals(FileName.of(bootId)));
  }

  /** A session and its last opening; a later opening by another pmfs ends the session. */
  private static FileName openingOf(UUID session, long opening) {
    return FileName.of(session + " " + opening);
  }

  int opening() {
    return opening;
  }

  int session() {
    return session;
  }

  boolean stoppedCleanly() {
    return stoppedCleanly;
  }

  /** The first inode number that this process may assign. */
  long firstNumber() {
    return firstNumber;
  }

  /** Records the opening in the state; if that fails, continues in memory. */
  void begin(Database database, InodeNumbers numbers) {
    try {
      directory.takeBallast();
    } catch (IOException e) {
      log.accept("the state: cannot reserve room in the file " + StateDirectory.BALLAST + ": " + e);
    }
    database.writeSynced(batch -> beginning(numbers, 0).forEach(batch::add));
    if (database.isRecording()) {
      recordedOpening = opening;
    }
  }

  private List<Change> beginning(InodeNumbers numbers, long reserved) {
    return List.of(
        directory.superblock(),
        Change.put(Family.DEFAULT, Keys.OPENING, Values.number(opening)),
        Change.put(Family.DEFAULT, Keys.SESSION_ID, Values.bytes(openingOf(id, opening).raw())),
        Change.put(Family.DEFAULT, Keys.SESSION_START, Values.number(session)),
        Change.put(Family.DEFAULT, Keys.NEXT_NUMBER, Values.number(numbers.next() + reserved)),
        Change.delete(Family.DEFAULT, Keys.CLEAN_STOP));
  }

  /** The record of a clean stop. */
  List<Change> ending(InodeNumbers numbers, boolean isClean) {
    Change next = Change.put(Family.DEFAULT, Keys.NEXT_NUMBER, Values.number(numbers.next()));
    return isClean
        ? List.of(
            next,
            Change.put(Family.DEFAULT, Keys.CLEAN_STOP, Values.bytes(FileName.of(bootId).raw())))
        : List.of(next);
  }

  /** The state can no longer be written. */
  void failed(String failure) {
    directory.releaseBallast();
    sayUnrecorded(failure);
  }

  /** Reports that names are not recorded. */
  void sayUnrecorded(String failure) {
    log.accept(
        "the state: %s; names are kept in memory, and no copies are made until it can be written"
            .formatted(failure));
  }

  void recover(Database database, InodeNumbers numbers) {
    if (database.isRecording()) {
      return;
    }
    try {
      directory.takeBallast();
    } catch (IOException e) {
      database.setFailure(e.toString());
      return;
    }
    database.replace(
        (overlay, lastChange, isDamaged) -> reopen(numbers, overlay, lastChange, isDamaged));
    if (database.isRecording()) {
      log.accept("the state can be written again: names and copies are recorded");
    } else {
      directory.releaseBallast();
    }
  }

  private Database.Opened reopen(
      InodeNumbers numbers, Overlay overlay, long lastChange, boolean isDamaged) {
    StateDirectory.Found found;
    try {
      if (isDamaged && !directory.setAside(directory.damage())) {
        return new Database.Opened(null, "the damaged state cannot be set aside", false);
      }
      found = directory.open();
    } catch (StateException e) {
      return new Database.Opened(null, String.valueOf(e.getMessage()), false);
    }
    RocksStore store = found.store();
    boolean isOurs = found.opening() == recordedOpening;
    boolean isAnothers = !isOurs && !found.isNew();
    if (store == null) {
      return new Database.Opened(null, found.failure(), false);
    }
    // A repaired disk may have lost unsynced changes. The overlay may record a directory as
    // listed although its names are among the lost changes.
    boolean isAsItWas = lastChange >= 0 && isOurs && store.lastChange() >= lastChange;
    if (found.failure() != null || (isAnothers && found.next() > firstNumber)) {
      String failure =
          found.failure() == null
              ? "another mount used the state directory in the meantime; unmount and mount again"
              : found.failure();
      if (isAsItWas) {
        return new Database.Opened(store, failure, false);
      }
      store.close();
      return new Database.Opened(null, failure, false);
    }
    // The overlay cannot be applied to an unknown state, whose names have their own numbers.
    boolean isLaidOn = lastChange >= 0 ? isAsItWas : found.isNew();
    boolean isOther = !isLaidOn;
    try {
      numbers.raise(found.next());
      if (isAnothers) {
        opening = Math.toIntExact(found.opening() + 1);
        session = opening;
      }
      store.apply(beginning(numbers, InodeNumbers.RESERVED), true);
      if (isLaidOn) {
        overlay.pour(changes -> store.apply(changes, false));
        store.apply(beginning(numbers, InodeNumbers.RESERVED), true);
      }
      recordedOpening = opening;
      return new Database.Opened(store, null, isOther);
    } catch (StoreFailure e) {
      if (isAsItWas) {
        return new Database.Opened(store, String.valueOf(e.getMessage()), false);
      }
      store.close();
      return new Database.Opened(null, String.valueOf(e.getMessage()), false);
    } catch (RuntimeException | Error e) {
      store.close();
      throw e;
    }
  }
}
