package io.pmfs.table;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.table.StateException.Kind;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Named tables of bytes in a directory of their own, which belongs to one owner. Nothing is kept
 * only in memory: a change that cannot be written fails, and so do later changes until the disk can
 * be written again, which is tried at most once a second. On a full disk, a {@link Reserve} permits
 * changes that add nothing, such as removals. Thread-safe.
 */
public final class TableStore implements AutoCloseable {
  private static final Table ABOUT = new Table("default", false);
  private static final byte[] OWNER = "owner".getBytes(US_ASCII);
  private static final long PAUSE_NANOS = 1_000_000_000L;

  private final Path directory;
  private final byte[] owner;
  private final List<Table> tables;
  private final long memoryBytes;
  private final Faults faults;

  // INVARIANT: the store is used while holding `use` shared, and exchanged while holding it
  // exclusive.
  private final ReentrantReadWriteLock use = new ReentrantReadWriteLock();
  private @Nullable RocksStore store; // GUARDED_BY(use)
  private boolean closed; // GUARDED_BY(use)
  private volatile @Nullable String failure;
  private volatile long failedAtNanos;
  private final AtomicInteger openings = new AtomicInteger(1);
  private final Reserve reserve; // GUARDED_BY(use), exclusive

  /** Why additions fail although other changes succeed; null if they succeed, too. */
  private volatile @Nullable String shortage;

  private volatile long lookedAtNanos;

  /**
   * A table.
   *
   * @param grouped whether keys that share their first eight bytes are read together
   */
  public record Table(String name, boolean grouped) implements Column {
    @Override
    public byte[] bytes() {
      return name.getBytes(US_ASCII);
    }
  }

  private TableStore(
      Path directory, byte[] owner, List<Table> tables, long memoryBytes, Faults faults) {
    this.directory = directory;
    this.owner = owner;
    this.tables = tables;
    this.memoryBytes = memoryBytes;
    this.faults = faults;
    this.reserve = new Reserve(directory);
  }

  /**
   * Opens the tables, and creates what is missing.
   *
   * @param owner identifies the directory's owner from its first opening on
   * @param memoryBytes memory limit, at least 16 MiB
   * @throws StateException if the directory belongs to another owner, is in use, is damaged or
   *     cannot be read
   */
  public static TableStore open(
      Path directory, String owner, List<Table> tables, long memoryBytes) {
    return open(directory, owner, tables, memoryBytes, Faults.NONE);
  }

  public static TableStore open(
      Path directory, String owner, List<Table> tables, long memoryBytes, Faults faults) {
    List<Table> all = new ArrayList<>();
    all.add(ABOUT);
    all.addAll(tables);
    TableStore opened =
        new TableStore(directory, owner.getBytes(UTF_8), List.copyOf(all), memoryBytes, faults);
    opened.store = opened.openStore();
    opened.reserve.take();
    return opened;
  }

  private RocksStore openStore() {
    RocksStore opened = RocksFiles.open(directory, tables, memoryBytes, faults);
    try {
      byte[] there = opened.get(ABOUT, OWNER);
      if (there == null) {
        opened.apply(List.of(Change.put(ABOUT, OWNER, owner)), true);
      } else if (!Arrays.equals(there, owner)) {
        throw new StateException(
            "%s belongs to %s, not to %s; choose another state directory"
                .formatted(directory, new String(there, UTF_8), new String(owner, UTF_8)),
            null);
      }
      return opened;
    } catch (StateException e) {
      opened.close();
      throw e;
    }
  }

  /** Why changes fail now; null if they succeed. */
  public @Nullable String failure() {
    return failure;
  }

  /** Why additions fail although other changes succeed; null if that is not so. */
  public @Nullable String shortage() {
    endShortage();
    return shortage;
  }

  /**
   * How often the tables were opened. After a failure they are reopened; earlier reads may then no
   * longer be true.
   */
  public int openings() {
    return openings.get();
  }

  /** The value of a key; null if there is none. */
  public byte @Nullable [] get(Table table, byte[] key) {
    return using(() -> current().get(table, key));
  }

  /** Passes the pairs from a key on, in the order of their bytes, until the visitor ends it. */
  public void scan(Table table, byte[] from, Visitor visitor) {
    scan(table, from, false, visitor);
  }

  /** Passes, from a key of a grouped table on, the pairs that share its first eight bytes. */
  public void scanGroup(Table table, byte[] from, Visitor visitor) {
    scan(table, from, true, visitor);
  }

  private void scan(Table table, byte[] from, boolean inGroup, Visitor visitor) {
    using(
        () -> {
          try (RocksStore.Cursor cursor = current().cursor(table, from, inGroup)) {
            while (cursor.isValid() && visitor.visit(cursor.key(), cursor.value())) {
              cursor.next();
            }
          }
          return true;
        });
  }

  /** Receives pairs; returns false to end the scan. It must not use the store. */
  @FunctionalInterface
  public interface Visitor {
    boolean visit(byte[] key, byte[] value);
  }

  /** Changes that are applied together, in order. Used by one thread. */
  public static final class Changes {
    private final List<Change> changes = new ArrayList<>();
    private boolean isAddition;

    /** Marks the batch as an addition, which can wait until the disk has room. */
    public void add() {
      isAddition = true;
    }

    public void put(Table table, byte[] key, byte[] value) {
      changes.add(Change.put(table, key, value));
    }

    public void delete(Table table, byte[] key) {
      changes.add(Change.delete(table, key));
    }

    public boolean isEmpty() {
      return changes.isEmpty();
    }
  }

  /** Applies all changes or none; they survive the process, not necessarily the machine. */
  public void apply(Changes changes) {
    if (changes.isAddition) {
      requireRoom();
    }
    change(
        () -> {
          current().apply(changes.changes, false);
          return true;
        });
  }

  /** Syncs everything that was applied. */
  public void sync() {
    change(
        () -> {
          current().sync();
          return true;
        });
  }

  private RocksStore current() { // GUARDED_BY(use)
    RocksStore now = store;
    if (closed || now == null) {
      String why = closed ? "it is closed" : String.valueOf(failure);
      throw new StateException(
          "cannot use the tables in " + directory + ": " + why, null, Kind.UNAVAILABLE);
    }
    return now;
  }

  private <T extends @Nullable Object> T using(Supplier<T> steps) {
    use.readLock().lock();
    try {
      if (store != null || closed) {
        return steps.get();
      }
    } finally {
      use.readLock().unlock();
    }
    reopen();
    use.readLock().lock();
    try {
      return steps.get();
    } finally {
      use.readLock().unlock();
    }
  }

  private void change(Supplier<Boolean> steps) {
    if (failure != null) {
      reopen();
    }
    try {
      using(
          () -> {
            String why = failure;
            if (why != null) {
              throw new StateException(
                  "cannot write the tables in " + directory + ": " + why, null, Kind.UNAVAILABLE);
            }
            return steps.get();
          });
    } catch (StoreFailure e) {
      failedAtNanos = System.nanoTime();
      failure = String.valueOf(e.getMessage());
      throw e;
    }
  }

  private void requireRoom() {
    endShortage();
    String why = shortage;
    if (why != null && failure == null) {
      throw new StateException(
          "cannot add to the tables in " + directory + ": " + why, null, Kind.UNAVAILABLE);
    }
  }

  /** Checks, at most once a second, whether the disk has room again. */
  private void endShortage() {
    if (shortage == null || System.nanoTime() - lookedAtNanos < PAUSE_NANOS) {
      return;
    }
    use.writeLock().lock();
    try {
      lookedAtNanos = System.nanoTime();
      if (shortage != null && failure == null && !closed && reserve.take()) {
        shortage = null;
      }
    } finally {
      use.writeLock().unlock();
    }
  }

  /** After a failure RocksDB accepts no changes until it is reopened. */
  private void reopen() {
    use.writeLock().lock();
    try {
      if (failure == null || closed || System.nanoTime() - failedAtNanos < PAUSE_NANOS) {
        return;
      }
      failedAtNanos = System.nanoTime();
      RocksStore before = store;
      store = null;
      if (before != null) {
        before.close();
      }
      String why = failure;
      if (RocksFiles.isNoRoom(why) && reserve.give()) {
        shortage = why + "; until there is room, changes that add something are refused";
        lookedAtNanos = System.nanoTime();
      }
      try {
        store = openStore();
        failure = null;
        openings.incrementAndGet();
      } catch (StateException e) {
        failure = String.valueOf(e.getMessage());
        openForReading();
      }
    } finally {
      use.writeLock().unlock();
    }
  }

  private void openForReading() { // GUARDED_BY(use)
    try {
      store = RocksFiles.openReadOnly(directory, tables, memoryBytes, faults);
      openings.incrementAndGet();
    } catch (StateException e) {
      store = null;
    }
  }

  @Override
  public void close() {
    use.writeLock().lock();
    try {
      RocksStore last = store;
      if (!closed && last != null) {
        if (failure == null) {
          try {
            last.sync();
          } catch (StoreFailure e) {
            failure = String.valueOf(e.getMessage());
          }
        }
        last.close();
      }
      closed = true;
      store = null;
    } finally {
      use.writeLock().unlock();
    }
  }
}
