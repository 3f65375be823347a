package io.pmfs.table;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.pmfs.table.StateException.Kind;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.rocksdb.BlockBasedTableConfig;
import org.rocksdb.BloomFilter;
import org.rocksdb.Cache;
import org.rocksdb.ColumnFamilyDescriptor;
import org.rocksdb.ColumnFamilyHandle;
import org.rocksdb.ColumnFamilyOptions;
import org.rocksdb.CompressionType;
import org.rocksdb.DBOptions;
import org.rocksdb.Env;
import org.rocksdb.Filter;
import org.rocksdb.IndexType;
import org.rocksdb.InfoLogLevel;
import org.rocksdb.LRUCache;
import org.rocksdb.Options;
import org.rocksdb.ReadOptions;
import org.rocksdb.RocksDB;
import org.rocksdb.RocksDBException;
import org.rocksdb.RocksIterator;
import org.rocksdb.RocksMemEnv;
import org.rocksdb.Status;
import org.rocksdb.WriteBufferManager;

/** Opens the directory of a RocksDB database within limits, or says in one line why it cannot. */
public final class RocksFiles {
  /** With less memory, the write buffers of the families would not fit. */
  public static final long MIN_MEMORY_BYTES = 16L << 20;

  private static final long MAX_MEMTABLE_BYTES = 8L << 20;
  private static final int ARENA_BLOCK_BYTES = 64 * 1024;
  private static final int MEMTABLES_PER_FAMILY = 2;
  private static final int OPEN_FILES = 512;
  private static final int BACKGROUND_JOBS = 2;
  private static final int CACHE_SHARD_BITS = 2;
  private static final double HIGH_PRIORITY_SHARE = 0.5;
  private static final long LOG_FILE_BYTES = 1L << 20;
  private static final int LOG_FILES = 3;
  private static final long WAL_BYTES = 64L << 20;
  private static final int BLOOM_BITS_PER_KEY = 10;
  private static final int BLOCK_BYTES = 4096;
  private static final int TABLE_FORMAT = 5;

  // RocksDB's own 256 MiB and 64 MiB are for larger buffers: each merge of four full ones, some 8
  // MiB, would write up to a whole level again (docs/results/million-files.md).
  private static final long FIRST_LEVEL_BYTES = 32L << 20;
  private static final long FIRST_LEVEL_FILE_BYTES = 8L << 20;
  private static final int NEXT_LEVEL_FILE_TIMES = 2;

  /** A path in RocksDB's in-memory environment. */
  private static final Path MEMORY = Path.of("/memory");

  private final Path directory;
  private final List<? extends Column> columns;
  private final List<AutoCloseable> opened = new ArrayList<>();

  private RocksFiles(Path directory, List<? extends Column> columns) {
    this.directory = directory;
    this.columns = columns;
  }

  public static RocksStore open(
      Path directory, List<? extends Column> columns, long memoryBytes, Faults faults) {
    if (memoryBytes < MIN_MEMORY_BYTES) {
      throw new IllegalArgumentException(
          "memory of " + memoryBytes + " bytes is less than " + MIN_MEMORY_BYTES);
    }
    loadLibrary();
    RocksFiles files = new RocksFiles(directory, columns);
    try {
      Files.createDirectories(directory);
      files.refuseUnknown();
      faults.beforeRead();
      return files.openStore(memoryBytes, false, faults, options -> {});
    } catch (FileAlreadyExistsException e) {
      throw new StateException(
          "the state directory " + directory + " is not a directory; choose another", e);
    } catch (IOException e) {
      throw new StateException(
          isNoRoom(e)
              ? noRoom(directory)
              : "cannot create the state directory %s: %s; check its disk"
                  .formatted(directory, reason(e)),
          e,
          Kind.UNAVAILABLE);
    } catch (RocksDBException e) {
      closeAll(files.opened);
      throw files.openFailure(e);
    }
  }

  /** Opens an existing database without changing it, on a disk that cannot be written. */
  public static RocksStore openReadOnly(
      Path directory, List<? extends Column> columns, long memoryBytes, Faults faults) {
    loadLibrary();
    RocksFiles files = new RocksFiles(directory, columns);
    try {
      faults.beforeRead();
      return files.openStore(memoryBytes, true, faults, options -> {});
    } catch (RocksDBException e) {
      closeAll(files.opened);
      throw files.openFailure(e);
    }
  }

  /** Opens an empty database that exists only in memory. */
  public static RocksStore openInMemory(long memoryBytes) {
    loadLibrary();
    RocksFiles files = new RocksFiles(MEMORY, List.of(Family.values()));
    try {
      return files.openMemory(memoryBytes);
    } catch (RocksDBException e) {
      closeAll(files.opened);
      throw failure("cannot keep names in memory", e);
    }
  }

  public static void loadLibrary() {
    try {
      RocksDB.loadLibrary();
    } catch (RuntimeException | UnsatisfiedLinkError e) {
      throw new StateException(
          "cannot load RocksDB's native library: "
              + oneLine(e)
              + "; the JVM's temporary directory must allow execution",
          e);
    }
  }

  private RocksStore openMemory(long memoryBytes) throws RocksDBException {
    Env env = own(new RocksMemEnv(Env.getDefault()));
    return openStore(memoryBytes / 2, false, Faults.NONE, options -> options.setEnv(env));
  }

  private RocksStore openStore(
      long memoryBytes, boolean readOnly, Faults faults, Consumer<DBOptions> where)
      throws RocksDBException {
    Cache cache = own(new LRUCache(memoryBytes, CACHE_SHARD_BITS, false, HIGH_PRIORITY_SHARE));
    WriteBufferManager writeBuffers = own(new WriteBufferManager(memoryBytes / 2, cache, true));
    Filter bloom = own(new BloomFilter(BLOOM_BITS_PER_KEY));
    DBOptions options = own(databaseOptions(writeBuffers));
    where.accept(options);
    List<ColumnFamilyDescriptor> descriptors = new ArrayList<>();
    for (Column family : columns) {
      ColumnFamilyOptions familyOptions = own(familyOptions(family, memoryBytes, cache, bloom));
      descriptors.add(new ColumnFamilyDescriptor(family.bytes(), familyOptions));
    }
    List<ColumnFamilyHandle> handles = new ArrayList<>();
    String path = directory.toString();
    RocksDB db =
        readOnly
            ? RocksDB.openReadOnly(options, path, descriptors, handles)
            : RocksDB.open(options, path, descriptors, handles);
    String place = directory.equals(MEMORY) ? "the names in memory" : "the namespace in " + path;
    return new RocksStore(place, !directory.equals(MEMORY), db, faults, columns, handles, opened);
  }

  private static DBOptions databaseOptions(WriteBufferManager writeBuffers) {
    return new DBOptions()
        .setCreateIfMissing(true)
        .setCreateMissingColumnFamilies(true)
        .setWriteBufferManager(writeBuffers)
        .setMaxTotalWalSize(WAL_BYTES)
        // Even if part of the log is lost, the rest is the namespace at some earlier moment.
        .setAtomicFlush(true)
        .setMaxOpenFiles(OPEN_FILES)
        .setMaxFileOpeningThreads(BACKGROUND_JOBS)
        .setMaxBackgroundJobs(BACKGROUND_JOBS)
        .setInfoLogLevel(InfoLogLevel.WARN_LEVEL)
        .setMaxLogFileSize(LOG_FILE_BYTES)
        .setKeepLogFileNum(LOG_FILES)
        .setStatsDumpPeriodSec(0)
        .setStatsPersistPeriodSec(0);
  }

  private static ColumnFamilyOptions familyOptions(
      Column family, long memoryBytes, Cache cache, Filter bloom) {
    // Two-level indexes and filters: only the parts in use take cache, however large the dataset.
    BlockBasedTableConfig table =
        new BlockBasedTableConfig()
            .setFormatVersion(TABLE_FORMAT)
            .setBlockSize(BLOCK_BYTES)
            .setBlockCache(cache)
            .setCacheIndexAndFilterBlocks(true)
            .setCacheIndexAndFilterBlocksWithHighPriority(true)
            .setPinL0FilterAndIndexBlocksInCache(true)
            .setPinTopLevelIndexAndFilter(true)
            .setIndexType(IndexType.kTwoLevelIndexSearch)
            .setPartitionFilters(true)
            .setMetadataBlockSize(BLOCK_BYTES)
            .setFilterPolicy(bloom);
    ColumnFamilyOptions options =
        new ColumnFamilyOptions()
            .setWriteBufferSize(Math.min(MAX_MEMTABLE_BYTES, memoryBytes / 16))
            .setMaxWriteBufferNumber(MEMTABLES_PER_FAMILY)
            .setArenaBlockSize(ARENA_BLOCK_BYTES)
            .setCompressionType(CompressionType.LZ4_COMPRESSION)
            .setMaxBytesForLevelBase(FIRST_LEVEL_BYTES)
            .setTargetFileSizeBase(FIRST_LEVEL_FILE_BYTES)
            .setTargetFileSizeMultiplier(NEXT_LEVEL_FILE_TIMES)
            .setTableFormatConfig(table);
    return family.grouped() ? options.useFixedLengthPrefixExtractor(Long.BYTES) : options;
  }

  /**
   * Refuses a database of another program. RocksDB would create a new database if the file that
   * names the current one is lost, and would add families to any database. So a database with other
   * families, or with keys but not all of our families, is refused before it is opened.
   */
  private void refuseUnknown() throws RocksDBException, IOException {
    if (!Files.exists(directory.resolve("CURRENT"))) {
      if (hasTables()) {
        throw new StateException(
            directory + " lacks the file CURRENT of its database", null, Kind.DAMAGED);
      }
      return;
    }
    List<String> ours = columns.stream().map(column -> new String(column.bytes(), UTF_8)).toList();
    try (Options options = new Options()) {
      List<String> there =
          RocksDB.listColumnFamilies(options, directory.toString()).stream()
              .map(name -> new String(name, UTF_8))
              .toList();
      if (!ours.containsAll(there) || (!there.containsAll(ours) && hasKeys(options))) {
        throw foreign(directory.toString());
      }
    }
  }

  private boolean hasTables() throws IOException {
    try (Stream<Path> files = Files.list(directory)) {
      return files.anyMatch(file -> file.toString().matches(".*/[0-9]+\\.(sst|log)"));
    }
  }

  private boolean hasKeys(Options options) throws RocksDBException {
    try (RocksDB db = RocksDB.openReadOnly(options, directory.toString());
        ReadOptions read = new ReadOptions();
        RocksIterator pairs = db.newIterator(read)) {
      pairs.seekToFirst();
      return pairs.isValid();
    }
  }

  public static StateException foreign(String place) {
    return new StateException(
        place + " holds a database that this version of pmfs did not write", null, Kind.NEWER);
  }

  private StateException openFailure(RocksDBException e) {
    String reason = oneLine(e);
    if (reason.contains("While lock file: ") || reason.contains("lock hold by current process")) {
      return new StateException(
          "the state directory "
              + directory
              + " is in use by another pmfs; unmount that one, or choose another state directory",
          e,
          Kind.IN_USE);
    }
    if (isNoRoom(e)) {
      return new StateException(noRoom(directory), e, Kind.UNAVAILABLE);
    }
    return failure("cannot open the namespace in " + directory, e);
  }

  private static String noRoom(Path directory) {
    return "no room on the disk of " + directory + "; free some, or choose another --state-dir";
  }

  private static boolean isNoRoom(Exception e) {
    return isNoRoom(String.valueOf(e.getMessage()));
  }

  static boolean isNoRoom(String reason) {
    return reason.contains("No space left on device") || reason.contains("Disk quota exceeded");
  }

  /** The message without the path, which ours already names. */
  private static String reason(IOException e) {
    String reason = e instanceof FileSystemException failed ? failed.getReason() : e.getMessage();
    return reason == null ? e.getClass().getSimpleName() : reason;
  }

  /** Whether the failure means that the files are damaged, not that their disk failed. */
  static boolean isDamage(RocksDBException e) {
    Status status = e.getStatus();
    if (status == null) {
      return false;
    }
    return switch (status.getCode()) {
      case Corruption, NotFound, NotSupported, InvalidArgument, Incomplete -> true;
      case IOError -> oneLine(e).contains("No such file or directory");
      default -> false;
    };
  }

  static StateException failure(String what, RocksDBException e) {
    return new StateException(
        what + ": " + oneLine(e), e, isDamage(e) ? Kind.DAMAGED : Kind.UNAVAILABLE);
  }

  static String oneLine(Throwable e) {
    return String.valueOf(e.getMessage()).replace('\n', ' ');
  }

  private <T extends AutoCloseable> T own(T closeable) {
    opened.add(0, closeable);
    return closeable;
  }

  static void closeAll(List<AutoCloseable> closeables) {
    for (AutoCloseable closeable : closeables) {
      try {
        closeable.close();
      } catch (Exception e) {
        throw new IllegalStateException("a native object cannot be closed", e);
      }
    }
  }
}
