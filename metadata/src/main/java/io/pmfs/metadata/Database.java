package io.pmfs.metadata;

import java.util.ArrayList;
import java.util.Collections;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.WriteBatch;
import org.rocksdb.WriteOptions;

/**
 * An open RocksDB, in bytes. Safe for use by many threads; {@link #close} waits for running calls,
 * and calls after it get an exception instead of reaching freed memory.
 */
final class Database implements AutoCloseable {
  private static final int BATCH_RESERVED_BYTES = 64 * 1024;

  // Every read has to look through the ranges deleted lately; so few keys are deleted one by one.
  private static final int FEW = 256;

  // INVARIANT: native objects are touched only while holding `use`, shared or exclusive, with
  // `closed` false. It is reentrant because a visitor may call in again.
  private final ReentrantReadWriteLock use = new ReentrantReadWriteLock();
  private final String place;
  private final RocksDB db;
  private final Map<Family, ColumnFamilyHandle> families = new EnumMap<>(Family.class);
  private final List<AutoCloseable> owned;
  private final ReadOptions point = new ReadOptions();
  private final ReadOptions group = new ReadOptions().setPrefixSameAsStart(true);
  private final ReadOptions ordered = new ReadOptions().setTotalOrderSeek(true);
  private final WriteOptions lazy = new WriteOptions().setMemtableInsertHintPerBatch(true);
  private final WriteOptions synced = new WriteOptions().setSync(true);
  private boolean closed; // GUARDED_BY(use)

  /**
   * Takes over everything it is given.
   *
   * @param place what messages call it
   * @param handles of the families, in their order
   * @param owned closed after the database, first to last
   */
  Database(String place, RocksDB db, List<ColumnFamilyHandle> handles, List<AutoCloseable> owned) {
    this.place = place;
    this.db = db;
    this.owned = owned;
    Family[] all = Family.values();
    for (int i = 0; i < all.length; i++) {
      families.put(all[i], handles.get(i));
    }
  }

  byte @Nullable [] get(Family family, byte[] key) {
    enter();
    try {
      return db.get(handle(family), point, key);
    } catch (RocksDBException e) {
      throw failed("read", e);
    } finally {
      leave();
    }
  }

  /** The values of the keys, in their order, null where there is none. */
  List<byte @Nullable []> get(Family family, List<byte[]> keys) {
    if (keys.isEmpty()) {
      return List.of();
    }
    enter();
    try {
      return db.multiGetAsList(point, Collections.nCopies(keys.size(), handle(family)), keys);
    } catch (RocksDBException e) {
      throw failed("read", e);
    } finally {
      leave();
    }
  }

  /** Passes the pairs from a key on that share its first eight bytes to the visitor. */
  void scanGroup(Family family, byte[] from, Visitor visitor) {
    scan(family, group, from, visitor);
  }

  /** Passes the pairs from a key on to the visitor. */
  void scan(Family family, byte[] from, Visitor visitor) {
    scan(family, ordered, from, visitor);
  }

  private void scan(Family family, ReadOptions options, byte[] from, Visitor visitor) {
    enter();
    try (RocksIterator pairs = db.newIterator(handle(family), options)) {
      pairs.seek(from);
      while (pairs.isValid() && visitor.visit(pairs.key(), pairs.value())) {
        pairs.next();
      }
      pairs.status();
    } catch (RocksDBException e) {
      throw failed("read", e);
    } finally {
      leave();
    }
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
    enter();
    try {
      db.put(handle(family), lazy, key, value);
    } catch (RocksDBException e) {
      throw failed("write", e);
    } finally {
      leave();
    }
  }

  void delete(Family family, byte[] key) {
    enter();
    try {
      db.delete(handle(family), lazy, key);
    } catch (RocksDBException e) {
      throw failed("write", e);
    } finally {
      leave();
    }
  }

  /** All changes or none; they survive the process, not necessarily the machine. */
  void write(Consumer<Batch> changes) {
    write(changes, lazy);
  }

  /** All changes or none; they and everything before them survive the machine. */
  void writeSynced(Consumer<Batch> changes) {
    write(changes, synced);
  }

  private void write(Consumer<Batch> changes, WriteOptions options) {
    enter();
    try (WriteBatch batch = new WriteBatch(BATCH_RESERVED_BYTES)) {
      changes.accept(new Batch(batch));
      db.write(options, batch);
    } catch (RocksDBException e) {
      throw failed("write", e);
    } finally {
      leave();
    }
  }

  /** Writes the last changes, synced, and closes. Idempotent. */
  void close(Consumer<Batch> last) {
    if (use.getReadHoldCount() > 0) {
      throw new IllegalStateException("a visitor cannot close what it is visiting");
    }
    use.writeLock().lock();
    try {
      if (!closed) {
        try {
          writeSynced(last);
          db.flushWal(true);
        } catch (RocksDBException e) {
          throw failed("write", e);
        } finally {
          closed = true;
          closeNative();
        }
      }
    } finally {
      use.writeLock().unlock();
    }
  }

  /** Closes as it is. */
  @Override
  public void close() {
    use.writeLock().lock();
    try {
      if (!closed) {
        closed = true;
        closeNative();
      }
    } finally {
      use.writeLock().unlock();
    }
  }

  private void closeNative() {
    for (ColumnFamilyHandle family : families.values()) {
      family.close();
    }
    db.close();
    point.close();
    group.close();
    ordered.close();
    lazy.close();
    synced.close();
    RocksFiles.closeAll(owned);
  }

  private void enter() {
    use.readLock().lock();
    if (closed) {
      use.readLock().unlock();
      throw new NamespaceException("the namespace in " + place + " is closed; open it again", null);
    }
  }

  private void leave() {
    use.readLock().unlock();
  }

  private ColumnFamilyHandle handle(Family family) {
    ColumnFamilyHandle handle = families.get(family);
    if (handle == null) {
      throw new IllegalArgumentException("no family " + family);
    }
    return handle;
  }

  private NamespaceException failed(String verb, RocksDBException e) {
    return RocksFiles.failure("cannot " + verb + " the namespace in " + place, e);
  }

  /** Is shown pairs; false ends the scan. */
  @FunctionalInterface
  interface Visitor {
    boolean visit(byte[] key, byte[] value);
  }

  /** Changes that are made together. */
  final class Batch {
    private final WriteBatch batch;

    private Batch(WriteBatch batch) {
      this.batch = batch;
    }

    void put(Family family, byte[] key, byte[] value) {
      try {
        batch.put(handle(family), key, value);
      } catch (RocksDBException e) {
        throw failed("write", e);
      }
    }

    void delete(Family family, byte[] key) {
      try {
        batch.delete(handle(family), key);
      } catch (RocksDBException e) {
        throw failed("write", e);
      }
    }

    /** Deletes every key of a grouped family that starts with this number. */
    void deleteGroup(Family family, long number) {
      List<byte[]> keys = new ArrayList<>();
      scanGroup(family, Keys.number(number), (key, value) -> keys.add(key) && keys.size() <= FEW);
      if (keys.size() <= FEW) {
        keys.forEach(key -> delete(family, key));
        return;
      }
      try {
        batch.deleteRange(handle(family), Keys.number(number), Keys.number(number + 1));
      } catch (RocksDBException e) {
        throw failed("write", e);
      }
    }
  }
}
