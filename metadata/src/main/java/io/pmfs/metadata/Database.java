package io.pmfs.metadata;

import io.pmfs.table.Batch;
import io.pmfs.table.Family;
import io.pmfs.table.RocksStore;
import io.pmfs.table.StateException;
import io.pmfs.table.StoreFailure;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Consumer;
import java.util.function.LongFunction;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The namespace as bytes; keeps working if its disk fails. Safe for use by many threads; {@link
 * #close} waits for running calls, and later calls throw an exception.
 *
 * <p>While the state on the disk can be written, it holds everything. When it cannot be written,
 * changes go to an {@link Overlay}; reads look there first and then in the state, which no longer
 * changes. When the state cannot be read either, only the overlay is left: the state's data is lost
 * until it is fetched again, and {@link #losses} counts that. {@link #replace} ends both
 * conditions.
 */
final class Database implements AutoCloseable {
  /** The overlay is cleared no more often than this, so that imports can finish. */
  private static final long FORGET_INTERVAL_NANOS = 5_000_000_000L;

  // INVARIANT: a store is used only while holding `use`, shared or exclusive, with `closed` false,
  // and exchanged only while holding it exclusive. The lock is reentrant because a visitor may call
  // this database.
  private final ReentrantReadWriteLock use = new ReentrantReadWriteLock();
  private final String place;
  private final LongFunction<RocksStore> memory;
  private final long memoryBytes;
  private @Nullable RocksStore state; // GUARDED_BY(use)
  private volatile @Nullable Overlay overlay; // written while holding `use` exclusive
  private volatile @Nullable String failure;
  private boolean isDamaged; // GUARDED_BY(use)
  private final AtomicInteger losses = new AtomicInteger();
  private volatile boolean hasFailed;
  private volatile Listener whenOtherwise = failed -> {};
  private long forgotAtNanos = System.nanoTime() - FORGET_INTERVAL_NANOS; // GUARDED_BY(use)
  private boolean closed; // GUARDED_BY(use)

  /**
   * Takes ownership of the state.
   *
   * @param place the state's name in messages
   * @param state null if it cannot be read
   * @param failure why the state cannot be written; null if it can
   * @param memory creates an empty store in memory
   * @param memoryBytes memory limit for changes that are not in the state
   */
  Database(
      String place,
      @Nullable RocksStore state,
      @Nullable String failure,
      LongFunction<RocksStore> memory,
      long memoryBytes) {
    this.place = place;
    this.state = state;
    this.memory = memory;
    this.memoryBytes = memoryBytes;
    if (failure != null) {
      this.failure = failure;
      hasFailed = true;
      overlay = new Overlay(memory.apply(memoryBytes));
    }
  }

  /** Called when the database switches to another store, before that store can be used. */
  @FunctionalInterface
  interface Listener {
    /**
     * Earlier reads may no longer be true.
     *
     * @param failed the failure of the state; null if it did not fail
     */
    void changed(@Nullable StoreFailure failed);
  }

  void onChange(Listener listener) {
    whenOtherwise = listener;
  }

  /** Why changes are not recorded; null if they are. */
  @Nullable String failure() {
    return failure;
  }

  /** Sets the reason why the state still cannot be written. */
  void setFailure(String why) {
    if (overlay != null) {
      failure = why;
    }
  }

  boolean isRecording() {
    return overlay == null;
  }

  /** Whether the state ever failed while this database was open. */
  boolean hasFailed() {
    return hasFailed;
  }

  /** How often known data was forgotten. */
  int losses() {
    return losses.get();
  }

  byte @Nullable [] get(Family family, byte[] key) {
    return within(() -> find(family, key));
  }

  private byte @Nullable [] find(Family family, byte[] key) {
    Overlay first = overlay;
    byte[] found = first == null ? null : first.find(family, key);
    if (found != null) {
      return Overlay.value(found);
    }
    RocksStore base = state;
    return base == null ? null : base.get(family, key);
  }

  /** The values of the keys, in their order, null where there is none. */
  List<byte @Nullable []> get(Family family, List<byte[]> keys) {
    return within(
        () -> {
          RocksStore base = state;
          if (overlay == null && base != null) {
            return base.get(family, keys);
          }
          List<byte @Nullable []> values = new ArrayList<>(keys.size());
          for (byte[] key : keys) {
            values.add(find(family, key));
          }
          return values;
        });
  }

  /** Passes the visitor, from a key on, the pairs that share the key's first eight bytes. */
  void scanGroup(Family family, byte[] from, Visitor visitor) {
    scan(family, from, true, visitor);
  }

  /** Passes the pairs from a key on to the visitor. */
  void scan(Family family, byte[] from, Visitor visitor) {
    scan(family, from, false, visitor);
  }

  private void scan(Family family, byte[] from, boolean inGroup, Visitor visitor) {
    boolean[] begun = {false};
    Visitor noting =
        (key, value) -> {
          begun[0] = true;
          return visitor.visit(key, value);
        };
    within(
        () -> {
          if (begun[0]) {
            throw new NamespaceLostException("listing " + place);
          }
          merge(family, from, inGroup, noting);
          return true;
        });
  }

  private void merge(Family family, byte[] from, boolean inGroup, Visitor visitor) {
    Overlay first = overlay;
    RocksStore base = state;
    boolean isHidden = first != null && inGroup && first.isGroupGone(family, from);
    try (RocksStore.Cursor below =
            base == null || isHidden ? null : base.cursor(family, from, inGroup);
        RocksStore.Cursor above = first == null ? null : first.cursor(family, from, inGroup)) {
      while (true) {
        byte[] low = below != null && below.isValid() ? below.key() : null;
        byte[] high = above != null && above.isValid() ? above.key() : null;
        int order = order(low, high);
        if (low == null && high == null) {
          return;
        }
        if (order >= 0 && above != null && high != null) {
          byte[] value = Overlay.value(above.value());
          boolean isPair =
              value != null && !Overlay.isMark(family, high) && !Keys.isListedMark(family, high);
          if (isPair && value != null && !visitor.visit(high, value)) {
            return;
          }
          above.next();
        }
        if (order <= 0 && below != null && low != null) {
          boolean isGone =
              first != null && (order == 0 || (family.grouped() && first.isGroupGone(family, low)));
          if (!isGone && !visitor.visit(low, below.value())) {
            return;
          }
          below.next();
        }
      }
    }
  }

  /** Compares keys; null comes last. */
  private static int order(byte @Nullable [] one, byte @Nullable [] other) {
    if (one == null || other == null) {
      return one != null ? -1 : 1;
    }
    return Arrays.compareUnsigned(one, other);
  }

  /** Whether no key of a grouped family starts with this number. */
  boolean isGroupEmpty(Family family, long number) {
    List<byte[]> found = new ArrayList<>(1);
    scanGroup(
        family,
        Keys.number(number),
        (key, value) -> {
          found.add(key);
          return false;
        });
    return found.isEmpty();
  }

  void put(Family family, byte[] key, byte[] value) {
    write(batch -> batch.put(family, key, value));
  }

  void delete(Family family, byte[] key) {
    write(batch -> batch.delete(family, key));
  }

  /** Applies all changes or none; they survive the process, not necessarily the machine. */
  void write(Consumer<Batch> changes) {
    write(changes, false);
  }

  /** Applies all changes or none; they and all earlier changes survive the machine. */
  void writeSynced(Consumer<Batch> changes) {
    write(changes, true);
  }

  private void write(Consumer<Batch> changes, boolean sync) {
    Batch batch = new Batch();
    changes.accept(batch);
    within(
        () -> {
          Overlay instead = overlay;
          RocksStore base = state;
          if (instead != null) {
            instead.apply(batch.changes());
          } else if (base != null) {
            base.apply(batch.changes(), sync);
          }
          return true;
        });
  }

  /** Whether all names of a directory that its inode calls listed are in state or memory. */
  boolean isListed(long directory) {
    return within(
        () -> {
          Overlay first = overlay;
          if (first == null) {
            return true;
          }
          if (first.find(Family.LISTING, Keys.listedMark(directory)) != null
              && !isDeleted(first.find(Family.LISTING, Keys.listedMark(directory)))) {
            return true;
          }
          RocksStore base = state;
          byte[] key = Keys.number(directory);
          byte[] value =
              base == null || first.isGroupGone(Family.LISTING, key)
                  ? null
                  : base.get(Family.INODES, key);
          Inode inode = value == null ? null : Values.inode(directory, value);
          return inode != null && inode.listing() != null;
        });
  }

  private static boolean isDeleted(byte @Nullable [] found) {
    return found == null || Overlay.value(found) == null;
  }

  /** The exception for a malformed stored value. */
  StateException damaged(String what) {
    RocksStore base = state;
    return base == null
        ? new StateException(what + " in " + place + " is damaged", null)
        : base.damaged(what);
  }

  /**
   * Runs several steps against one state. If the state fails meanwhile, all steps run again,
   * against what is left.
   */
  <T extends @Nullable Object> T within(Supplier<T> steps) {
    while (true) {
      StoreFailure failed;
      use.readLock().lock();
      try {
        if (closed) {
          throw new StateException("the namespace in " + place + " is closed; open it again", null);
        }
        return steps.get();
      } catch (StoreFailure e) {
        if (use.getReadHoldCount() > 1) {
          throw e;
        }
        failed = e;
      } finally {
        use.readLock().unlock();
      }
      goOnWithout(failed);
    }
  }

  private void goOnWithout(StoreFailure failed) {
    use.writeLock().lock();
    try {
      RocksStore base = state;
      Overlay before = overlay;
      if (before != null && before.isIn(failed.store())) {
        throw failed;
      }
      if (closed || base == null || failed.store() != base) {
        return; // Another thread was first; the next round uses its result.
      }
      failure = failed.getMessage();
      hasFailed = true;
      if (before == null) {
        overlay = new Overlay(memory.apply(memoryBytes));
      }
      if (!failed.isWrite()) {
        isDamaged |= failed.isDamage();
        state = null;
        base.close();
        forgetOverlay();
      }
      whenOtherwise.changed(failed);
    } finally {
      use.writeLock().unlock();
    }
  }

  /** Clears the overlay if it takes too much memory; the state is unchanged. */
  void limitMemory() {
    Overlay full = overlay;
    if (full == null || within(this::overlayBytes) <= memoryBytes) {
      return;
    }
    use.writeLock().lock();
    try {
      long now = System.nanoTime();
      if (overlay == full && now - forgotAtNanos >= FORGET_INTERVAL_NANOS && !closed) {
        forgotAtNanos = now;
        forgetOverlay();
        whenOtherwise.changed(null);
      }
    } finally {
      use.writeLock().unlock();
    }
  }

  /**
   * Forgets all of the overlay, because its record of an inode may depend on the state's records of
   * the parents.
   */
  private void forgetOverlay() {
    Overlay before = overlay;
    overlay = new Overlay(memory.apply(memoryBytes));
    losses.incrementAndGet();
    if (before != null) {
      before.close();
    }
  }

  private long overlayBytes() {
    Overlay now = overlay;
    return now == null ? 0 : now.sizeBytes();
  }

  /** Creates the next state, while no other call runs. */
  interface Successor {
    /**
     * Opens a state again, after the previous one was closed.
     *
     * @param overlay the changes in memory
     * @param lastChange the last change of the state below the overlay, see {@link
     *     RocksStore#lastChange}; -1 if that state could not be read any more
     * @param isDamaged whether the state was found damaged
     */
    Opened open(Overlay overlay, long lastChange, boolean isDamaged);
  }

  /**
   * The result of opening a state.
   *
   * @param failure why the state cannot be written; null if it can
   * @param isOther whether the state lacks data that was known before
   */
  record Opened(@Nullable RocksStore state, @Nullable String failure, boolean isOther) {}

  /** Resumes recording if the successor can be written; waits for running calls. */
  void replace(Successor successor) {
    use.writeLock().lock();
    try {
      Overlay before = overlay;
      if (closed || before == null) {
        return;
      }
      RocksStore base = state;
      long lastChange = base == null ? -1 : base.lastChange();
      state = null;
      Opened opened = open(successor, before, base, lastChange);
      state = opened.state();
      failure = opened.failure();
      if (base != null && state == null) {
        forgetOverlay();
      } else if (opened.isOther()) {
        losses.incrementAndGet();
      }
      if (opened.failure() == null) {
        isDamaged = false;
        overlay = null;
        before.close();
      }
      whenOtherwise.changed(null);
    } finally {
      use.writeLock().unlock();
    }
  }

  /** Whatever is thrown, the previous state is closed, and its data lost until the next attempt. */
  private Opened open(
      Successor successor, Overlay before, @Nullable RocksStore base, long lastChange) {
    try {
      if (base != null) {
        base.close();
      }
      return successor.open(before, lastChange, isDamaged);
    } catch (RuntimeException | Error e) {
      return new Opened(null, e.toString(), false);
    }
  }

  /** Writes the last changes, synced, if possible, and closes. Idempotent. */
  void close(Consumer<Batch> last) {
    if (use.getReadHoldCount() > 0) {
      throw new IllegalStateException("a visitor cannot close what it is visiting");
    }
    use.writeLock().lock();
    try {
      RocksStore base = state;
      if (!closed && overlay == null && base != null) {
        Batch batch = new Batch();
        last.accept(batch);
        base.apply(batch.changes(), true);
        base.flush();
      }
    } catch (StoreFailure e) {
      // The next session finds no clean stop.
      failure = e.getMessage();
    } finally {
      close();
      use.writeLock().unlock();
    }
  }

  @Override
  public void close() {
    use.writeLock().lock();
    try {
      if (!closed) {
        closed = true;
        if (state != null) {
          state.close();
        }
        Overlay last = overlay;
        if (last != null) {
          last.close();
        }
      }
    } finally {
      use.writeLock().unlock();
    }
  }

  /** Receives pairs; returns false to end the scan. */
  @FunctionalInterface
  interface Visitor {
    boolean visit(byte[] key, byte[] value);
  }
}
