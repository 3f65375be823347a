package io.pmfs.cache;

import static java.nio.charset.StandardCharsets.US_ASCII;

import io.pmfs.table.TableStore;
import io.pmfs.table.TableStore.Changes;
import io.pmfs.table.TableStore.Table;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The records of whole copies, in tables on the disk: memory does not grow with their number. Every
 * file below {@code copies} has a record, also if the service is killed; a record may lack its
 * file. Used by one thread at a time.
 *
 * @see <a href="file:docs/formats.md">the tables</a>
 */
final class CopyIndex implements AutoCloseable {
  private static final long MEMORY_BYTES = 32L << 20;
  private static final String OWNER = "pmfs node-cache";

  private static final Table STATE = new Table("state", false);
  private static final Table COPIES = new Table("copies", false);
  private static final Table BY_USE = new Table("by-use", false);
  private static final Table LINKS = new Table("links", false);
  private static final Table CONTENTS = new Table("contents", false);
  private static final Table INODES = new Table("inodes", false);
  private static final List<Table> TABLES = List.of(STATE, COPIES, BY_USE, LINKS, CONTENTS, INODES);

  private static final byte[] OPENED = "opened".getBytes(US_ASCII);
  private static final int PAGE = 32;
  private static final int USE_BYTES = Integer.BYTES + Long.BYTES;
  private static final int ENTRY_BYTES = 3 * Integer.BYTES + 2 * Long.BYTES;

  private final TableStore tables;

  /**
   * A whole copy.
   *
   * @param user to whose share it counts
   * @param checksum the CRC32C of its content
   * @param used when, in nanoseconds since 1970; no two are the same
   * @param comparedBy the run of the service that compared or made it; others do not trust it
   * @param links files of the source with equal content, whose copies are names of its file
   */
  record Entry(CopyKey key, int user, int checksum, long used, long comparedBy, int links) {
    Entry used(int byUser, long now) {
      return new Entry(key, byUser, checksum, now, comparedBy, links);
    }

    Entry comparedBy(long run) {
      return new Entry(key, user, checksum, used, run, links);
    }

    private Entry links(int count) {
      return new Entry(key, user, checksum, used, comparedBy, count);
    }
  }

  /** Receives what is known of all copies without reading their records. */
  interface Uses {
    void use(int user, CopyKey key, int links);
  }

  /**
   * Opens the index, which it makes if it is missing.
   *
   * @throws io.pmfs.table.StateException if that is impossible, or it is damaged
   */
  CopyIndex(Path directory) {
    this.tables = TableStore.open(directory, OWNER, TABLES, MEMORY_BYTES);
  }

  /** Who had it open last and did not close it; null if it was closed. */
  byte @Nullable [] opened() {
    return tables.get(STATE, OPENED);
  }

  /** Remembers who has it open, or that it was closed, so that the machine may fail now. */
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

  /** The copy of a file, perhaps that of another with equal content; null if there is none. */
  @Nullable Entry find(CopyKey key) {
    byte[] value = tables.get(COPIES, key.encoded());
    if (value != null && value.length == CopyKey.BYTES) {
      CopyKey first = CopyKey.take(ByteBuffer.wrap(value));
      byte[] its = tables.get(COPIES, value);
      return its == null ? null : entry(first, its);
    }
    return value == null ? null : entry(key, value);
  }

  private static @Nullable Entry entry(CopyKey key, byte[] value) {
    if (value.length != ENTRY_BYTES) {
      return null;
    }
    ByteBuffer from = ByteBuffer.wrap(value);
    return new Entry(
        key, from.getInt(), from.getInt(), from.getLong(), from.getLong(), from.getInt());
  }

  /**
   * Records a copy.
   *
   * @param before what was recorded of it; null if nothing was
   */
  void put(@Nullable Entry before, Entry now) {
    Changes changes = new Changes();
    put(changes, before, now);
    tables.apply(changes);
  }

  private static void put(Changes changes, @Nullable Entry before, Entry now) {
    if (before != null) {
      changes.delete(BY_USE, use(before.user, before.used, before.key));
    }
    changes.put(
        BY_USE,
        use(now.user, now.used, now.key),
        ByteBuffer.allocate(Integer.BYTES).putInt(now.links).array());
    changes.put(
        COPIES,
        now.key.encoded(),
        ByteBuffer.allocate(ENTRY_BYTES)
            .putInt(now.user)
            .putInt(now.checksum)
            .putLong(now.used)
            .putLong(now.comparedBy)
            .putInt(now.links)
            .array());
  }

  private static byte[] use(int user, long used, CopyKey key) {
    return key.put(ByteBuffer.allocate(USE_BYTES + CopyKey.BYTES).putInt(user).putLong(used))
        .array();
  }

  /** Forgets a copy with all its links. */
  void remove(Entry entry) {
    Changes changes = new Changes();
    changes.delete(BY_USE, use(entry.user, entry.used, entry.key));
    for (CopyKey link : links(entry.key)) {
      changes.delete(COPIES, link.encoded());
      changes.delete(LINKS, link(entry.key, link));
    }
    changes.delete(COPIES, entry.key.encoded());
    if (entry.key.equals(twin(entry.key.size(), entry.checksum))) {
      changes.delete(CONTENTS, content(entry.key.size(), entry.checksum));
    }
    tables.apply(changes);
  }

  /**
   * Makes a file of the source one with equal content, and forgets its own copy.
   *
   * @param own that; null if there is none
   * @return the copy of both
   */
  Entry link(Entry copy, CopyKey other, @Nullable Entry own) {
    Entry linked = copy.links(copy.links + 1);
    Changes changes = new Changes();
    if (own != null) {
      changes.delete(BY_USE, use(own.user, own.used, own.key));
    }
    changes.put(COPIES, other.encoded(), copy.key.encoded());
    changes.put(LINKS, link(copy.key, other), new byte[0]);
    put(changes, copy, linked);
    tables.apply(changes);
    return linked;
  }

  private static byte[] link(CopyKey copy, CopyKey other) {
    return other.put(copy.put(ByteBuffer.allocate(2 * CopyKey.BYTES))).array();
  }

  /** The files of the source whose copies are names of this one's file. */
  List<CopyKey> links(CopyKey key) {
    List<CopyKey> links = new ArrayList<>();
    byte[] first = key.encoded();
    tables.scan(
        LINKS,
        first,
        (pair, nothing) -> {
          boolean isOfIt = Arrays.equals(pair, 0, first.length, first, 0, first.length);
          if (isOfIt) {
            links.add(CopyKey.take(ByteBuffer.wrap(pair, first.length, CopyKey.BYTES)));
          }
          return isOfIt;
        });
    return links;
  }

  /** The copy that is known to have a file; null if none is known. Only to make the index again. */
  @Nullable CopyKey firstLink(long inode) {
    byte[] key = tables.get(INODES, inode(inode));
    return key == null ? null : CopyKey.take(ByteBuffer.wrap(key));
  }

  void firstLink(long inode, CopyKey key) {
    Changes changes = new Changes();
    changes.put(INODES, inode(inode), key.encoded());
    tables.apply(changes);
  }

  private static byte[] inode(long inode) {
    return ByteBuffer.allocate(Long.BYTES).putLong(inode).array();
  }

  /** The copy to compare with others that have this size and checksum; null if none is known. */
  @Nullable CopyKey twin(long size, int checksum) {
    byte[] key = tables.get(CONTENTS, content(size, checksum));
    return key == null ? null : CopyKey.take(ByteBuffer.wrap(key));
  }

  void twin(Entry copy) {
    Changes changes = new Changes();
    changes.put(CONTENTS, content(copy.key.size(), copy.checksum), copy.key.encoded());
    tables.apply(changes);
  }

  private static byte[] content(long size, int checksum) {
    return ByteBuffer.allocate(Long.BYTES + Integer.BYTES).putLong(size).putInt(checksum).array();
  }

  /**
   * The copies of a user, the least recently used one first.
   *
   * @param since none was last used before
   */
  Page leastRecentlyUsed(int user, long since) {
    return new Page(user, since);
  }

  /** A position among the copies of a user. */
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

    /** When the first one was last used. */
    long first() {
      return first;
    }

    /** The next copy; null if there are no more. */
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
          (pair, links) ->
              ByteBuffer.wrap(pair).getInt() == user && ahead.add(pair) && ahead.size() < PAGE);
      byte[] last = ahead.peekLast();
      if (last != null) {
        from = Arrays.copyOf(last, last.length + 1); // behind it
        first = isFirst ? ByteBuffer.wrap(ahead.getFirst()).getLong(Integer.BYTES) : first;
      }
      return ahead.poll();
    }
  }

  /** Passes all copies, without their links. */
  void forEach(Uses visitor) {
    tables.scan(
        BY_USE,
        new byte[0],
        (pair, links) -> {
          ByteBuffer use = ByteBuffer.wrap(pair);
          int user = use.getInt();
          use.getLong();
          visitor.use(user, CopyKey.take(use), ByteBuffer.wrap(links).getInt());
          return true;
        });
  }

  @Override
  public void close() {
    tables.close();
  }
}
