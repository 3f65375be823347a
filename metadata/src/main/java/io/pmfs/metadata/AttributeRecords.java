package io.pmfs.metadata;

import io.pmfs.table.Batch;
import io.pmfs.table.Family;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * What the source said of files beside their attributes, each as of a change time of its file, and
 * unknown for any other: targets of symbolic links, extended attributes and access-control lists.
 * It can be asked for again, so new records are written in batches: a process that dies before
 * {@link #writeAll} may lose the last batch. Thread-safe.
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

  private enum Kind {
    TARGET(2),
    EXTENDED_ATTRIBUTES(2),
    ACCESS_LIST(1);

    /** Of the layout. Version 1 of the others had no time. */
    private final byte version;

    Kind(int version) {
      this.version = (byte) version;
    }
  }

  private record Key(long number, Kind kind) {
    Family family() {
      return kind == Kind.TARGET ? Family.TARGETS : Family.XATTRS;
    }

    byte[] bytes() {
      return kind == Kind.ACCESS_LIST ? Keys.accessList(number) : Keys.number(number);
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

  @Nullable FileName target(long number, Instant changeTime) {
    byte[] target = get(new Key(number, Kind.TARGET), changeTime);
    return target == null ? null : FileName.wrap(target);
  }

  void putTarget(long number, Instant changeTime, FileName target) {
    put(new Key(number, Kind.TARGET), changeTime, target.raw());
  }

  @Nullable Map<FileName, byte[]> extendedAttributes(long number, Instant changeTime) {
    byte[] attributes = get(new Key(number, Kind.EXTENDED_ATTRIBUTES), changeTime);
    return attributes == null ? null : Values.extendedAttributes(attributes);
  }

  void putExtendedAttributes(long number, Instant changeTime, Map<FileName, byte[]> attributes) {
    put(
        new Key(number, Kind.EXTENDED_ATTRIBUTES),
        changeTime,
        Values.extendedAttributes(attributes));
  }

  @Nullable FileName accessList(long number, Instant changeTime) {
    byte[] list = get(new Key(number, Kind.ACCESS_LIST), changeTime);
    return list == null ? null : FileName.wrap(list);
  }

  void putAccessList(long number, Instant changeTime, FileName list) {
    put(new Key(number, Kind.ACCESS_LIST), changeTime, list.raw());
  }

  /** Adds a list to a batch of its caller. */
  void putAccessList(Batch batch, long number, Instant changeTime, FileName list) {
    Key key = new Key(number, Kind.ACCESS_LIST);
    unwritten.remove(key);
    batch.put(key.family(), key.bytes(), dated(key, changeTime, list.raw()));
  }

  private byte @Nullable [] get(Key key, Instant changeTime) {
    byte[] found = unwritten.get(key);
    byte[] value = found == null ? database.get(key.family(), key.bytes()) : found;
    return value == null ? null : Values.datedContent(key.kind.version, changeTime, value);
  }

  private static byte[] dated(Key key, Instant changeTime, byte[] content) {
    return Values.dated(key.kind.version, changeTime, content);
  }

  private void put(Key key, Instant changeTime, byte[] content) {
    byte[] value = dated(key, changeTime, content);
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
                record ->
                    batch.put(
                        record.getKey().family(), record.getKey().bytes(), record.getValue())));
    some.forEach(record -> unwritten.remove(record.getKey(), record.getValue()));
    writtenAt = System.nanoTime();
  }

  /** Removes the records of an inode. One that is just being put may stay; no inode finds it. */
  void remove(Batch batch, long number) {
    for (Kind kind : Kind.values()) {
      Key key = new Key(number, kind);
      unwritten.remove(key);
      batch.delete(key.family(), key.bytes());
    }
  }

  /** Adds what is not written yet, before the database is closed. */
  void addUnwritten(Batch batch) {
    unwritten.forEach((key, value) -> batch.put(key.family(), key.bytes(), value));
  }
}
