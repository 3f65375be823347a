package io.pmfs.shards;

import com.google.common.hash.Hasher;
import com.google.common.hash.Hashing;
import io.pmfs.metadata.FileName;
import io.pmfs.source.BackingStore;
import io.pmfs.table.SortedTable;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The index of several shards: which names exist, and where in a shard each file is. A table in one
 * file; little of it is in memory. Any exception from it means that the index must be built again.
 * Thread-safe.
 */
public final class ShardIndex implements AutoCloseable {
  private static final long CACHE_BYTES = 16 << 20;
  private static final int NAMES_PER_BATCH = 1024;

  /** The first byte after NUL: keys from here on are not below the directory. */
  private static final byte BEHIND = 1;

  private final SortedTable table;
  private final IndexSummary summary;
  private final List<Shard> shards;

  private ShardIndex(SortedTable table) throws IOException {
    this.table = table;
    byte[] value = table.get(IndexFormat.SUMMARY_KEY);
    if (value == null) {
      throw new IOException("the index has no end");
    }
    this.summary = IndexFormat.summary(value);
    this.shards = readShards();
  }

  /**
   * Opens an index.
   *
   * @throws IOException if there is none, or it is damaged or of another format
   */
  public static ShardIndex open(Path file) throws IOException {
    SortedTable table = SortedTable.open(file, CACHE_BYTES);
    try {
      return new ShardIndex(table);
    } catch (IOException e) {
      table.close();
      throw e;
    }
  }

  private List<Shard> readShards() throws IOException {
    List<Shard> read = new ArrayList<>();
    try (SortedTable.Cursor cursor = table.cursor()) {
      cursor.seek(new byte[] {IndexFormat.SHARD});
      while (cursor.isValid() && cursor.key()[0] == IndexFormat.SHARD) {
        read.add(IndexFormat.shard(read.size(), cursor.value()));
        cursor.next();
      }
    }
    if (read.size() != summary.shards()) {
      throw new IOException("the index lacks shards");
    }
    return List.copyOf(read);
  }

  public IndexSummary summary() {
    return summary;
  }

  List<Shard> shards() {
    return shards;
  }

  /** Identifies the form and each shard's version. */
  String fingerprint() {
    Hasher hasher = Hashing.sha256().newHasher();
    hasher.putBoolean(summary.form().merged()).putBoolean(summary.form().nested());
    for (Shard shard : shards) {
      byte[] name = shard.name().bytes();
      Instant time = shard.modificationTime();
      hasher.putInt(name.length).putBytes(name).putLong(shard.size());
      hasher.putLong(time.getEpochSecond()).putInt(time.getNano());
    }
    return hasher.hash().toString();
  }

  /**
   * Whether the index of another set may take over a shard's entries: the shard has the same
   * version and no warnings, which would have to be reported again, and no other shard's members
   * share its directory.
   */
  boolean canLend(Shard shard, IndexForm form) {
    return !form.merged()
        && form.equals(summary.form())
        && summary.warnings() == 0
        && shards.stream().anyMatch(shard::isSameVersion);
  }

  /** Receives the copied entries. */
  interface Borrower {
    void member(FileName path, ShardMember member) throws ShardException;
  }

  /** Passes the members in a shard's directory, except directories that were added. */
  void lend(Shard shard, FileName directory, Borrower borrower) throws IOException, ShardException {
    byte[] first = IndexFormat.memberKey(directory);
    try (SortedTable.Cursor cursor = table.cursor()) {
      for (cursor.seek(first); cursor.isValid(); cursor.next()) {
        byte[] key = cursor.key();
        if (!hasPrefix(key, first) || (key.length > first.length && key[first.length] != 0)) {
          return;
        }
        ShardMember member = IndexFormat.member(cursor.value());
        if (member.position() != IndexWriter.NO_POSITION) {
          borrower.member(IndexFormat.path(key), member.inShard(shard.number()));
        }
      }
    }
  }

  @Nullable ShardMember member(FileName path) throws IOException {
    byte[] value = table.get(IndexFormat.memberKey(path));
    return value == null ? null : checked(IndexFormat.member(value));
  }

  private ShardMember checked(ShardMember member) throws IOException {
    if (member.shard() < 0 || member.shard() >= Math.max(1, shards.size())) {
      throw new IOException("the index refers to a shard that it does not list");
    }
    return member;
  }

  int linkCount(ShardMember member) throws IOException {
    if (!member.linked()) {
      return 1;
    }
    byte[] prefix = IndexFormat.orderKey(member.shard(), member.position());
    int count = 0;
    try (SortedTable.Cursor cursor = table.cursor()) {
      cursor.seek(prefix);
      while (cursor.isValid() && hasPrefix(cursor.key(), prefix)) {
        count++;
        cursor.next();
      }
    }
    return Math.max(1, count);
  }

  /** The names in a directory; {@code directory} must be a directory. */
  void list(FileName directory, BackingStore.NameConsumer batches) throws IOException {
    byte[] key = IndexFormat.memberKey(directory);
    byte[] prefix = Arrays.copyOf(key, key.length + 1);
    List<FileName> batch = new ArrayList<>();
    try (SortedTable.Cursor cursor = table.cursor()) {
      cursor.seek(prefix);
      while (cursor.isValid() && hasPrefix(cursor.key(), prefix)) {
        byte[] found = cursor.key();
        int end = prefix.length;
        while (end < found.length && found[end] != 0) {
          end++;
        }
        if (end == found.length) {
          batch.add(FileName.of(Arrays.copyOfRange(found, prefix.length, end)));
          if (batch.size() == NAMES_PER_BATCH) {
            if (!batches.accept(batch)) {
              return;
            }
            batch = new ArrayList<>();
          }
          cursor.next();
        } else {
          // Below a name that was listed: skip to the first key after it.
          byte[] behind = Arrays.copyOf(found, end + 1);
          behind[end] = BEHIND;
          cursor.seek(behind);
        }
      }
    }
    if (!batch.isEmpty()) {
      batches.accept(batch);
    }
  }

  /** A pass over the regular files of a shard, in the order of their positions. */
  Order order(int shard) {
    return new Order(shard);
  }

  @Override
  public void close() {
    table.close();
  }

  private static boolean hasPrefix(byte[] key, byte[] prefix) {
    return key.length >= prefix.length
        && Arrays.equals(key, 0, prefix.length, prefix, 0, prefix.length);
  }

  /** The state of a pass over the files of a shard. Used by one thread. */
  final class Order implements AutoCloseable {
    private final int shard;
    private final SortedTable.Cursor cursor = table.cursor();
    private long position = -1;
    private boolean started;

    private Order(int shard) {
      this.shard = shard;
    }

    /** One name of the next file; null after the last. */
    @Nullable FileName next() throws IOException {
      if (!started) {
        cursor.seek(IndexFormat.orderKey(shard, 0));
        started = true;
      }
      while (cursor.isValid() && cursor.key()[0] == IndexFormat.ORDER) {
        byte[] key = cursor.key();
        byte[] value = cursor.value();
        if (IndexFormat.shard(key) != shard) {
          return null;
        }
        cursor.next();
        boolean another = IndexFormat.position(key) != position;
        position = IndexFormat.position(key);
        if (another && IndexFormat.isRegular(value)) {
          return IndexFormat.pathOfOrder(key);
        }
      }
      return null;
    }

    @Override
    public void close() {
      cursor.close();
    }
  }
}
