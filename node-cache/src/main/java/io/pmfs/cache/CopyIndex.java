package io.pmfs.cache;

import static java.nio.charset.StandardCharsets.US_ASCII;

import io.pmfs.table.Faults;
import io.pmfs.table.TableStore;
import io.pmfs.table.TableStore.Changes;
import io.pmfs.table.TableStore.Table;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Records of complete copies in tables on disk, so that memory use does not depend on their number.
 * Every file below {@code copies} has a record, even if the service is killed; a record's file may
 * be missing. Not thread-safe.
 *
 * @see <a href="file:docs/formats.md">the tables</a>
 */
final class CopyIndex implements AutoCloseable {
  private static final long MEMORY_BYTES = 32L << 20;
  private static final String OWNER = "pmfs node-cache";

  private static final Table STATE = new Table("state", false);
  private static final Table COPIES = new Table("copies", false);
  private static final Table BY_USE = new Table("by-use", false);
  private static final List<Table> TABLES = List.of(STATE, COPIES, BY_USE);

  private static final byte[] OPENED = "opened".getBytes(US_ASCII);
  private static final int PAGE = 32;
  private static final int USE_BYTES = Integer.BYTES + Long.BYTES;
  private static final int ENTRY_BYTES = 2 * Integer.BYTES + 2 * Long.BYTES;

  private final TableStore tables;

  /**
   * A complete copy.
   *
   * @param user is charged for it
   * @param checksum the CRC32C of its content
   * @param used when it was last used, in nanoseconds since 1970; unique
   * @param comparedBy the run of the service that made or verified it; other runs do not trust it
   */
  record Entry(CopyKey key, int user, int checksum, long used, long comparedBy) {
    Entry used(int byUser, long now) {
      return new Entry(key, byUser, checksum, now, comparedBy);
    }

    Entry comparedBy(long run) {
      return new Entry(key, user, checksum, used, run);
    }
  }

  /** Receives all copies; called without reading their records. */
  interface Uses {
    void use(int user, CopyKey key);
  }

  /**
   * Opens the index; creates it if it is missing.
   *
   * @throws io.pmfs.table.StateException if the index is damaged or cannot be opened
   */
  CopyIndex(Path directory) {
    this(directory, Faults.NONE);
  }

  CopyIndex(Path directory, Faults faults) {
    this.tables = TableStore.open(directory, OWNER, TABLES, MEMORY_BYTES, faults);
  }

  /** The opener that did not close the index; null if it was closed. */
  byte @Nullable [] opened() {
    return tables.get(STATE, OPENED);
  }

  /** Durably records who has opened the index; null means that it was closed. */
  void opened(byte @Nullable [] by) {
    Changes changes = new Changes();
    if (by == null) {
      tables.sync();
      changes.delete(STATE, OPENED);
    } else {
      changes.put(STATE, OPENED, by);
    }
    tables.apply(changes);
    tables.sync();
  }

  @Nullable Entry find(CopyKey key) {
    byte[] value = tables.get(COPIES, key.encoded());
    return value == null ? null : entry(key, value);
  }

  private static @Nullable Entry entry(CopyKey key, byte[] value) {
    if (value.length != ENTRY_BYTES) {
      return null;
    }
    ByteBuffer from = ByteBuffer.wrap(value);
    return new Entry(key, from.getInt(), from.getInt(), from.getLong(), from.getLong());
  }

  /**
   * Adds or replaces a record.
   *
   * @param before its previous record, if any
   */
  void put(@Nullable Entry before, Entry now) {
    Changes changes = new Changes();
    if (before != null) {
      changes.delete(BY_USE, use(before.user, before.used, before.key));
    }
    changes.put(BY_USE, use(now.user, now.used, now.key), new byte[0]);
    changes.put(
        COPIES,
        now.key.encoded(),
        ByteBuffer.allocate(ENTRY_BYTES)
            .putInt(now.user)
            .putInt(now.checksum)
            .putLong(now.used)
            .putLong(now.comparedBy)
            .array());
    tables.apply(changes);
  }

  private static byte[] use(int user, long used, CopyKey key) {
    return key.put(ByteBuffer.allocate(USE_BYTES + CopyKey.BYTES).putInt(user).putLong(used))
        .array();
  }

  void remove(Entry entry) {
    Changes changes = new Changes();
    changes.delete(BY_USE, use(entry.user, entry.used, entry.key));
    changes.delete(COPIES, entry.key.encoded());
    tables.apply(changes);
  }

  /**
   * The copies of a user, least recently used first.
   *
   * @param since a lower bound of their times of use, to skip deleted keys
   */
  Page leastRecentlyUsed(int user, long since) {
    return new Page(user, since);
  }

  /** An iterator over the copies of a user. */
  final class Page {
    private final int user;
    private final Deque<byte[]> ahead = new ArrayDeque<>();
    private byte[] from;
    private long first;

    private Page(int user, long since) {
      this.user = user;
      this.first = since;
      this.from = ByteBuffer.allocate(USE_BYTES).putInt(user).putLong(since).array();
    }

    /** When the first copy was last used. */
    long first() {
      return first;
    }

    @Nullable Entry next() {
      while (true) {
        byte[] pair = ahead.isEmpty() ? read() : ahead.poll();
        if (pair == null) {
          return null;
        }
        CopyKey key = CopyKey.take(ByteBuffer.wrap(pair, USE_BYTES, CopyKey.BYTES));
        byte[] value = tables.get(COPIES, key.encoded());
        Entry entry = value == null ? null : entry(key, value);
        if (entry != null) {
          return entry;
        }
      }
    }

    private byte @Nullable [] read() {
      boolean isFirst = from.length == USE_BYTES;
      tables.scan(
          BY_USE,
          from,
          (pair, nothing) ->
              ByteBuffer.wrap(pair).getInt() == user && ahead.add(pair) && ahead.size() < PAGE);
      byte[] last = ahead.peekLast();
      if (last != null) {
        from = Arrays.copyOf(last, last.length + 1); // the next possible key
        first = isFirst ? ByteBuffer.wrap(ahead.getFirst()).getLong(Integer.BYTES) : first;
      }
      return ahead.poll();
    }
  }

  void forEach(Uses visitor) {
    tables.scan(
        BY_USE,
        new byte[0],
        (pair, nothing) -> {
          ByteBuffer use = ByteBuffer.wrap(pair);
          int user = use.getInt();
          use.getLong();
          visitor.use(user, CopyKey.take(use));
          return true;
        });
  }

  @Override
  public void close() {
    tables.close();
  }
}
