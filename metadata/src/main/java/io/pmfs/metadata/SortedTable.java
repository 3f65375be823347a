package io.pmfs.metadata;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.CompressionType;
import org.rocksdb.EnvOptions;
import org.rocksdb.IndexType;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDBException;
import org.rocksdb.SstFileReader;
import org.rocksdb.SstFileReaderIterator;
import org.rocksdb.SstFileWriter;

/**
 * Pairs of bytes in one file, sorted by key and written once: RocksDB's table format, each of whose
 * blocks has a checksum. All of them are compared when a table is opened, and each again when it is
 * read; so a damaged table is an IOException, never a wrong pair. Safe for use by many threads.
 */
public final class SortedTable implements AutoCloseable {
  /** The first with a checksum of its own for the footer, and blocks that know their place. */
  private static final int TABLE_FORMAT = 6;

  private static final int BLOCK_BYTES = 8 * 1024;

  private final Path file;
  private final List<AutoCloseable> opened = new ArrayList<>();
  private final SstFileReader reader;
  private final ReadOptions verified;

  private SortedTable(Path file, long cacheBytes) throws RocksDBException {
    this.file = file;
    boolean complete = false;
    try {
      Options options = options(opened, cacheBytes);
      reader = own(opened, new SstFileReader(options));
      verified = own(opened, new ReadOptions().setVerifyChecksums(true));
      reader.open(file.toString());
      reader.verifyChecksum();
      complete = true;
    } finally {
      if (!complete) {
        RocksFiles.closeAll(opened);
      }
    }
  }

  /**
   * Opens a table and compares all its checksums.
   *
   * @param cacheBytes for blocks that were read
   */
  public static SortedTable open(Path file, long cacheBytes) throws IOException {
    RocksFiles.loadLibrary();
    try {
      return new SortedTable(file, cacheBytes);
    } catch (RocksDBException e) {
      throw failure(file, e);
    }
  }

  /** The value of a key, null if there is none. */
  public byte @Nullable [] get(byte[] key) throws IOException {
    try (Cursor cursor = cursor()) {
      cursor.seek(key);
      return cursor.isValid() && Arrays.equals(cursor.key(), key) ? cursor.value() : null;
    }
  }

  public Cursor cursor() {
    return new Cursor(file, reader.newIterator(verified));
  }

  @Override
  public void close() {
    RocksFiles.closeAll(opened);
  }

  /** A place in a table, at first nowhere. Used by one thread. */
  public static final class Cursor implements AutoCloseable {
    private final Path file;
    private final SstFileReaderIterator pairs;

    private Cursor(Path file, SstFileReaderIterator pairs) {
      this.file = file;
      this.pairs = pairs;
    }

    /** Goes to the first key that is not below another. */
    public void seek(byte[] key) throws IOException {
      pairs.seek(key);
      check();
    }

    /** Whether the cursor stands at a pair; not so behind the last one. */
    public boolean isValid() {
      return pairs.isValid();
    }

    public void next() throws IOException {
      pairs.next();
      check();
    }

    public byte[] key() {
      return pairs.key();
    }

    public byte[] value() {
      return pairs.value();
    }

    private void check() throws IOException {
      if (!pairs.isValid()) {
        try {
          pairs.status();
        } catch (RocksDBException e) {
          throw failure(file, e);
        }
      }
    }

    @Override
    public void close() {
      pairs.close();
    }
  }

  /** A table in the making; nothing can be read of it before {@link #finish}. */
  public static final class Writer implements AutoCloseable {
    private final Path file;
    private final List<AutoCloseable> opened = new ArrayList<>();
    private final SstFileWriter writer;

    /** Starts a table; an existing file is replaced. */
    public Writer(Path file) throws IOException {
      RocksFiles.loadLibrary();
      this.file = file;
      EnvOptions environment = own(opened, new EnvOptions());
      writer = own(opened, new SstFileWriter(environment, options(opened, 0)));
      try {
        writer.open(file.toString());
      } catch (RocksDBException e) {
        close();
        throw failure(file, e);
      }
    }

    /** Adds a pair; its key has to be above that of the pair before. */
    public void put(byte[] key, byte[] value) throws IOException {
      try {
        writer.put(key, value);
      } catch (RocksDBException e) {
        throw failure(file, e);
      }
    }

    /** Writes what is left, synced. At least one pair must have been put. */
    public void finish() throws IOException {
      try {
        writer.finish();
      } catch (RocksDBException e) {
        throw failure(file, e);
      }
    }

    @Override
    public void close() {
      RocksFiles.closeAll(opened);
    }
  }

  private static Options options(List<AutoCloseable> opened, long cacheBytes) {
    BlockBasedTableConfig table =
        new BlockBasedTableConfig()
            .setFormatVersion(TABLE_FORMAT)
            .setBlockSize(BLOCK_BYTES)
            .setIndexType(IndexType.kTwoLevelIndexSearch)
            .setMetadataBlockSize(BLOCK_BYTES);
    if (cacheBytes > 0) {
      table.setBlockCache(own(opened, new LRUCache(cacheBytes))).setCacheIndexAndFilterBlocks(true);
    } else {
      table.setNoBlockCache(true);
    }
    return own(
        opened,
        new Options()
            .setCompressionType(CompressionType.LZ4_COMPRESSION)
            .setTableFormatConfig(table));
  }

  private static <T extends AutoCloseable> T own(List<AutoCloseable> opened, T closeable) {
    opened.add(0, closeable);
    return closeable;
  }

  private static IOException failure(Path file, RocksDBException e) {
    return new IOException(file + ": " + String.valueOf(e.getMessage()).replace('\n', ' '), e);
  }
}
