package io.pmfs.table;

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
 * Pairs of bytes in one file, sorted by key and written once, in RocksDB's table format. Each block
 * has a checksum. All checksums are verified when a table is opened, and each again when its block
 * is read, so a damaged table gives an IOException, never a wrong pair. Thread-safe.
 */
public final class SortedTable implements AutoCloseable {
  /**
   * The first version with a checksum for the footer, and with checksums that depend on a block's
   * position.
   */
  private static final int TABLE_FORMAT = 6;

  private static final int BLOCK_BYTES = 8 * 1024;

  private final Path file;
  private final List<AutoCloseable> opened = new ArrayList<>();
  private final SstFileReader reader;
  private final ReadOptions verified;

  private SortedTable(Path file, long cacheBytes) throws RocksDBException {
    this.file = file;
    try {
      Options options = options(opened, cacheBytes);
      reader = own(opened, new SstFileReader(options));
      verified = own(opened, new ReadOptions().setVerifyChecksums(true));
      reader.open(file.toString());
      reader.verifyChecksum();
    } catch (Throwable e) {
      RocksFiles.closeAll(opened);
      throw e;
    }
  }

  /**
   * Opens a table and verifies all its checksums.
   *
   * @param cacheBytes cache size for blocks that were read
   */
  public static SortedTable open(Path file, long cacheBytes) throws IOException {
    RocksFiles.loadLibrary();
    try {
      return new SortedTable(file, cacheBytes);
    } catch (RocksDBException e) {
      throw failure(file, e);
    }
  }

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

  /** A position in a table; initially at no pair. Used by one thread. */
  public static final class Cursor implements AutoCloseable {
    private final Path file;
    private final SstFileReaderIterator pairs;

    private Cursor(Path file, SstFileReaderIterator pairs) {
      this.file = file;
      this.pairs = pairs;
    }

    /** Moves to the first key that is not less than the given one. */
    public void seek(byte[] key) throws IOException {
      pairs.seek(key);
      check();
    }

    /** Whether the cursor is at a pair; false behind the last one. */
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

  /** A table that is being written; it cannot be read before {@link #finish}. */
  public static final class Writer implements AutoCloseable {
    private final Path file;
    private final List<AutoCloseable> opened = new ArrayList<>();
    private final SstFileWriter writer;

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

    /** Adds a pair; its key must be greater than the previous pair's. */
    public void put(byte[] key, byte[] value) throws IOException {
      try {
        writer.put(key, value);
      } catch (RocksDBException e) {
        throw failure(file, e);
      }
    }

    /** Writes the rest, synced. At least one pair must have been added. */
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
