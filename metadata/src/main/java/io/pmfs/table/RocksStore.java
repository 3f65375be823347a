package io.pmfs.table;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.FlushOptions;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.WriteBatch;
import org.rocksdb.WriteOptions;

/**
 * An open RocksDB database, as bytes; its failures are {@link StoreFailure}s. Safe for use by many
 * threads; the owner closes it when no thread uses it.
 */
public final class RocksStore implements AutoCloseable {
  private static final int BATCH_RESERVED_BYTES = 64 * 1024;

  // Every read has to check recent range deletions, so a few keys are deleted one by one.
  private static final int FEW = 256;

  private final String place;
  private final RocksDB db;
  private final Faults faults;
  private final Map<Column, ColumnFamilyHandle> families = new HashMap<>();
  private final List<AutoCloseable> owned;
  private final ReadOptions point = new ReadOptions();
  private final ReadOptions group = new ReadOptions().setPrefixSameAsStart(true);
  private final ReadOptions ordered = new ReadOptions().setTotalOrderSeek(true);
  private final WriteOptions lazy = new WriteOptions().setMemtableInsertHintPerBatch(true);
  private final WriteOptions synced = new WriteOptions().setSync(true);

  /**
   * Takes ownership of all arguments.
   *
   * @param place the store's name in messages
   * @param logged whether changes go to a write-ahead log
   * @param columns all that the database has
   * @param handles of the columns, in their order
   * @param owned closed after the database, first to last
   */
  RocksStore(
      String place,
      boolean logged,
      RocksDB db,
      Faults faults,
      List<? extends Column> columns,
      List<ColumnFamilyHandle> handles,
      List<AutoCloseable> owned) {
    this.place = place;
    this.db = db;
    this.faults = faults;
    this.owned = owned;
    lazy.setDisableWAL(!logged);
    for (int i = 0; i < columns.size(); i++) {
      families.put(columns.get(i), handles.get(i));
    }
  }

  public byte @Nullable [] get(Column family, byte[] key) {
    try {
      faults.beforeRead();
      return db.get(handle(family), point, key);
    } catch (RocksDBException e) {
      throw failed("read", e);
    }
  }

  /** The values of the keys, in their order, null where there is none. */
  public List<byte @Nullable []> get(Column family, List<byte[]> keys) {
    if (keys.isEmpty()) {
      return List.of();
    }
    try {
      faults.beforeRead();
      return db.multiGetAsList(point, Collections.nCopies(keys.size(), handle(family)), keys);
    } catch (RocksDBException e) {
      throw failed("read", e);
    }
  }

  /**
   * The pairs from a key on, in order; if {@code inGroup}, only those that share its first eight
   * bytes.
   */
  public Cursor cursor(Column family, byte[] from, boolean inGroup) {
    return new Cursor(db.newIterator(handle(family), inGroup ? group : ordered), from);
  }

  /** A position in a family. Used by one thread. */
  public final class Cursor implements AutoCloseable {
    private final RocksIterator pairs;

    private Cursor(RocksIterator pairs, byte[] from) {
      this.pairs = pairs;
      pairs.seek(from);
    }

    /** Whether there is a pair at this position; throws if that cannot be determined. */
    public boolean isValid() {
      try {
        faults.beforeRead();
        if (pairs.isValid()) {
          return true;
        }
        pairs.status();
        return false;
      } catch (RocksDBException e) {
        throw failed("read", e);
      }
    }

    public byte[] key() {
      return pairs.key();
    }

    public byte[] value() {
      return pairs.value();
    }

    public void next() {
      pairs.next();
    }

    @Override
    public void close() {
      pairs.close();
    }
  }

  /** Applies all changes or none; they survive the process and, if synced, the machine. */
  public void apply(List<Change> changes, boolean sync) {
    try (WriteBatch batch = new WriteBatch(BATCH_RESERVED_BYTES)) {
      faults.beforeWrite();
      for (Change change : changes) {
        add(batch, change);
      }
      db.write(sync ? synced : lazy, batch);
      if (sync) {
        db.flushWal(true);
      }
    } catch (RocksDBException e) {
      throw failed("write", e);
    }
  }

  private void add(WriteBatch batch, Change change) throws RocksDBException {
    ColumnFamilyHandle family = handle(change.family());
    byte[] value = change.value();
    if (value != null) {
      batch.put(family, change.key(), value);
    } else if (!change.isGroup()) {
      batch.delete(family, change.key());
    } else {
      List<byte[]> keys = firstOfGroup(change.family(), change.key());
      if (keys.size() > FEW) {
        batch.deleteRange(family, change.key(), change.endOfGroup());
        return;
      }
      for (byte[] key : keys) {
        batch.delete(family, key);
      }
    }
  }

  private List<byte[]> firstOfGroup(Column family, byte[] number) {
    List<byte[]> keys = new ArrayList<>();
    try (Cursor cursor = cursor(family, number, true)) {
      for (; keys.size() <= FEW && cursor.isValid(); cursor.next()) {
        keys.add(cursor.key());
      }
    }
    return keys;
  }

  /** Syncs everything that was applied. */
  void sync() {
    try {
      faults.beforeWrite();
      db.flushWal(true);
    } catch (RocksDBException e) {
      throw failed("write", e);
    }
  }

  /** Writes everything that is only in the log into tables, so that the log is no longer needed. */
  public void flush() {
    try (FlushOptions options = new FlushOptions()) {
      db.flush(options, List.copyOf(families.values()));
    } catch (RocksDBException e) {
      throw failed("write", e);
    }
  }

  /**
   * The number of the last change. If the directory is opened again with a lower number, the disk
   * lost changes that were written but not synced.
   */
  public long lastChange() {
    return db.getLatestSequenceNumber();
  }

  /** The size of tables and write buffers. */
  public long sizeBytes() {
    try {
      return db.getAggregatedLongProperty("rocksdb.live-sst-files-size")
          + db.getAggregatedLongProperty("rocksdb.cur-size-all-mem-tables");
    } catch (RocksDBException e) {
      throw failed("read", e);
    }
  }

  @Override
  public void close() {
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

  private ColumnFamilyHandle handle(Column family) {
    ColumnFamilyHandle handle = families.get(family);
    if (handle == null) {
      throw new IllegalArgumentException("no family " + family);
    }
    return handle;
  }

  private StoreFailure failed(String verb, RocksDBException e) {
    return new StoreFailure(
        this, verb.equals("write"), RocksFiles.isDamage(e), "cannot " + verb + " " + place, e);
  }

  /** The exception for a malformed stored value. */
  public StoreFailure damaged(String what) {
    return new StoreFailure(this, false, true, what + " in " + place + " is damaged", null);
  }
}
