package io.pmfs.metadata;

import io.pmfs.table.Batch;
import io.pmfs.table.Family;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Extended attributes and access-control lists by inode number. They only repeat what the source
 * said, so new ones are written in batches: a process that dies before {@link #writeAll} may lose
 * the last batch, and its successor asks the source again. Removals are written at once.
 * Thread-safe.
 */
final class AttributeRecords {
  /** With one write for each record, a task's threads wait for each other. */
  private static final int BATCH = 64;

  /** As many may wait while another thread writes. */
  private static final int MOST = 1024;

  /** A longer record is written at once. */
  private static final int LONG_BYTES = 4096;

  /** A record that comes alone is written at once. */
  private static final long PAUSE_NANOS = 50_000_000;

  private record Key(long number, boolean isList) {
    byte[] bytes() {
      return isList ? Keys.accessList(number) : Keys.number(number);
    }
  }

  private final Database database;
  private final Map<Key, byte[]> unwritten = new ConcurrentHashMap<>();

  /** Acquired last, while the database is in use. */
  private final ReentrantLock writing = new ReentrantLock();

  private volatile long writtenAt = System.nanoTime() - PAUSE_NANOS;

  AttributeRecords(Database database) {
    this.database = database;
  }

  @Nullable Map<FileName, byte[]> extendedAttributes(long number) {
    byte[] value = get(new Key(number, false));
    return value == null ? null : Values.extendedAttributes(value);
  }

  @Nullable FileName accessList(long number, Instant changeTime) {
    byte[] value = get(new Key(number, true));
    return value == null ? null : Values.accessList(changeTime, value);
  }

  private byte @Nullable [] get(Key key) {
    byte[] value = unwritten.get(key);
    return value == null ? database.get(Family.XATTRS, key.bytes()) : value;
  }

  void putExtendedAttributes(long number, Map<FileName, byte[]> attributes) {
    put(new Key(number, false), Values.attributes(attributes));
  }

  void putAccessList(long number, Instant changeTime, FileName list) {
    put(new Key(number, true), Values.accessListOf(changeTime, list));
  }

  /** Adds a list to a batch of its caller. */
  void putAccessList(Batch batch, long number, Instant changeTime, FileName list) {
    Key key = new Key(number, true);
    unwritten.remove(key);
    batch.put(Family.XATTRS, key.bytes(), Values.accessListOf(changeTime, list));
  }

  private void put(Key key, byte[] value) {
    unwritten.put(key, value);
    int count = unwritten.size();
    boolean isUrgent = count >= MOST || value.length > LONG_BYTES;
    if (isUrgent || count >= BATCH || System.nanoTime() - writtenAt > PAUSE_NANOS) {
      write(isUrgent);
    }
  }

  /** Writes what was put before; it survives the process then. */
  void writeAll() {
    if (!unwritten.isEmpty()) {
      write(true);
    }
  }

  private void write(boolean waits) {
    database.within(
        () -> {
          if (waits) {
            writing.lock();
          } else if (!writing.tryLock()) {
            return true;
          }
          try {
            write();
            return true;
          } finally {
            writing.unlock();
          }
        });
  }

  private void write() {
    List<Map.Entry<Key, byte[]>> some = List.copyOf(unwritten.entrySet());
    database.write(
        batch ->
            some.forEach(
                record -> batch.put(Family.XATTRS, record.getKey().bytes(), record.getValue())));
    some.forEach(record -> unwritten.remove(record.getKey(), record.getValue()));
    writtenAt = System.nanoTime();
  }

  void removeExtendedAttributes(long number) {
    Key key = new Key(number, false);
    remove(List.of(key), batch -> {});
  }

  /** Removes all records of an inode, together with further changes. */
  void remove(long number, Consumer<Batch> more) {
    remove(List.of(new Key(number, false), new Key(number, true)), more);
  }

  private void remove(List<Key> keys, Consumer<Batch> more) {
    database.within(
        () -> {
          writing.lock();
          try {
            keys.forEach(unwritten::remove);
            database.write(
                batch -> {
                  keys.forEach(key -> batch.delete(Family.XATTRS, key.bytes()));
                  more.accept(batch);
                });
            return true;
          } finally {
            writing.unlock();
          }
        });
  }

  /** Adds what is not written yet, before the database is closed. */
  void addUnwritten(Batch batch) {
    unwritten.forEach((key, value) -> batch.put(Family.XATTRS, key.bytes(), value));
  }
}
