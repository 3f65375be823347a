package io.pmfs.tier;

import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.WRITE;

import io.pmfs.metadata.Extent;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.LongPredicate;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Copies in one directory, on a local disk or on a file system on persistent memory: plain files,
 * or small copies together in {@link Bundles}. Survives restart; an unreadable copy counts as
 * absent.
 *
 * <p>On persistent memory a copy is synced before it is made visible. Elsewhere nothing is synced:
 * after a crash of the machine a file may have wrong content, which its checksums detect.
 */
public final class DirectoryTier implements Tier {
  private static final Logger log = LoggerFactory.getLogger(DirectoryTier.class);

  /** How long to wait before a full disk is checked for room again. */
  private static final long FULL_RETRY_NANOS = 10_000_000_000L;

  private static final String KEEP_FREE_REACHED = "its disk has no free space beyond --keep-free";

  /** Larger writes cost three times the processor time on ext4; see docs/decisions/0020. */
  private static final int WRITE_BYTES = 256 << 10;

  /** A tier has about 128 bundles, or up to a few thousand: each is an open file. */
  private static final int BUNDLES = 128;

  private static final long SMALLEST_BUNDLE_BYTES = 64 << 10;
  private static final long LARGEST_BUNDLE_BYTES = 512 << 20;

  static final FileAttribute<?> DIRECTORY_MODE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
  static final FileAttribute<?> FILE_MODE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));

  private final TierSettings settings;
  private final CopyFiles files;
  private final FileChannel lock;
  private final Room room;
  private final Bundles bundles;
  private final @Nullable DaxEvidence dax;

  /** For mapped files; {@link DaxFiles#NONE} if they are not mapped. */
  private final DaxFiles daxFiles;

  private final boolean synced;

  // These are estimates until a census was taken.
  private long fileBytes; // GUARDED_BY(this)
  private final AtomicLong copyCount = new AtomicLong();
  private final AtomicBoolean toldOfKeepFree = new AtomicBoolean();

  private volatile TierStatus.State state;
  private final LongAdder errors = new LongAdder();
  private volatile @Nullable String reason;
  private volatile long fullSinceNanos;

  /** A tier on a disk; see the other constructor. */
  public DirectoryTier(TierSettings settings, @Nullable Usage usage) throws IOException {
    this(settings, usage, null);
  }

  /**
   * Opens the directory, creating it if necessary, and drops incomplete copies of an earlier
   * session.
   *
   * @param usage the counts of the last clean stop, with which the tier accepts copies at once;
   *     null if unknown: it then accepts none before a {@link Tier.Census} was taken
   * @param daxFiles how files are mapped if the directory is meant to be on persistent memory,
   *     which is probed; null for a disk
   * @throws IOException if the directory cannot be created, read or written
   */
  public DirectoryTier(TierSettings settings, @Nullable Usage usage, @Nullable DaxFiles daxFiles)
      throws IOException {
    this.settings = settings;
    this.files = new CopyFiles(settings.directory());
    this.lock = lock(settings.directory());
    files.clearIncoming();
    this.dax = daxFiles == null ? null : DaxProbe.probe(files.incoming(), daxFiles, Path.of("/"));
    this.synced = dax != null && dax.isReal();
    this.daxFiles = daxFiles != null && isDirect() ? daxFiles : DaxFiles.NONE;
    FileStore disk = Files.getFileStore(settings.directory());
    this.room = new Room(settings.capacityBytes(), settings.keepFreeBytes(), disk::getUsableSpace);
    this.bundles =
        new Bundles(
            new BundleFiles(settings.directory().resolve("bundles"), synced),
            bundleBytes(settings.capacityBytes()),
            room);
    boolean noFiles = files.isEmpty();
    boolean isEmpty = noFiles && bundles.isEmpty();
    if (usage != null && !isEmpty) {
      copyCount.set(usage.copies());
      fileBytes = noFiles ? 0 : usage.fileBytes();
      room.found(fileBytes);
    }
    this.state = usage != null || isEmpty ? TierStatus.State.ON : TierStatus.State.RECOVERING;
    this.reason = state == TierStatus.State.ON ? null : "not yet compared with the records";
  }

  private static long bundleBytes(long capacityBytes) {
    return Math.max(SMALLEST_BUNDLE_BYTES, Math.min(capacityBytes / BUNDLES, LARGEST_BUNDLE_BYTES));
  }

  @Override
  public String name() {
    return settings.name();
  }

  @Override
  public @Nullable CopyReader open(long number, @Nullable Extent extent) throws IOException {
    if (state == TierStatus.State.FAILED) {
      return null;
    }
    if (extent != null) {
      return openBundled(extent);
    }
    FileChannel file;
    try {
      file = FileChannel.open(files.path(number), READ);
    } catch (NoSuchFileException e) {
      checkPlace();
      return null;
    } catch (IOException e) {
      failed(e);
      throw e;
    }
    try {
      return new OpenFile(file, daxFiles);
    } catch (IOException e) {
      file.close();
      failed(e);
      throw e;
    }
  }

  private @Nullable CopyReader openBundled(Extent extent) throws IOException {
    CopyReader reader;
    try {
      reader = bundles.open(extent);
    } catch (IOException e) {
      failed(e);
      throw e;
    }
    if (reader == null) {
      checkPlace();
    }
    return reader;
  }

  /** Called when a copy is missing: throws if the whole directory of the tier is missing. */
  private void checkPlace() throws IOException {
    try {
      files.checkPlace();
    } catch (IOException e) {
      failed(e);
      throw e;
    }
  }

  @Override
  public boolean has(long number, @Nullable Extent extent, long sizeBytes) throws IOException {
    if (state == TierStatus.State.FAILED) {
      return false;
    }
    boolean isThere;
    try {
      isThere = extent == null ? files.size(number) == sizeBytes : bundles.has(extent);
    } catch (IOException e) {
      failed(e);
      throw e;
    }
    if (!isThere) {
      checkPlace();
    }
    return isThere;
  }

  @Override
  public @Nullable Path file(long number) {
    return state == TierStatus.State.FAILED ? null : files.path(number);
  }

  @Override
  public boolean isDirect() {
    return dax != null && dax.isDirect();
  }

  @Override
  public @Nullable CopyWriter create(long number, long sizeBytes) {
    if (!couldHold(sizeBytes) || (state != TierStatus.State.ON && !hasRoomAgain())) {
      return null;
    }
    long charge = Room.charge(sizeBytes);
    try {
      files.checkPlace();
      if (room.reserve(charge)) {
        return new IncomingCopy(number, charge);
      }
      if (room.wasDiskFull() && toldOfKeepFree.compareAndSet(false, true)) {
        log.warn("tier {}: {}; no copies are made until there is room", name(), KEEP_FREE_REACHED);
      }
      return null;
    } catch (IOException e) {
      failed(e);
      return null;
    }
  }

  @Override
  public synchronized void remove(long number, @Nullable Extent extent, long sizeBytes) {
    if (state == TierStatus.State.FAILED) {
      return;
    }
    try {
      if (extent != null) {
        bundles.drop(extent);
      } else {
        files.remove(number);
        freed(Room.charge(sizeBytes));
      }
      copyCount.updateAndGet(count -> Math.max(0, count - 1));
    } catch (IOException e) {
      failed(e);
    }
  }

  /** Subtracts removed bytes, at most what the estimate has. */
  private void freed(long bytes) { // GUARDED_BY(this)
    long known = Math.min(bytes, fileBytes);
    fileBytes -= known;
    room.free(known);
  }

  @Override
  public Set<Long> sparseBundles() {
    return state == TierStatus.State.ON ? bundles.sparse() : Set.of();
  }

  @Override
  public @Nullable Extent move(Extent extent, ByteBuffer through) {
    long charge = Room.charge(extent.size());
    if (state != TierStatus.State.ON) {
      return null;
    }
    try {
      if (!room.move(charge)) {
        return null;
      }
      IncomingCopy copy = new IncomingCopy(0, charge);
      try (CopyReader reader = bundles.open(extent)) {
        if (reader == null || reader.size() != extent.size()) {
          return null;
        }
        reader.read(0, Math.toIntExact(extent.size())).copyTo(through.clear());
        copy.append(through.flip());
        return copy.commit();
      } finally {
        copy.close();
      }
    } catch (IOException e) {
      failed(e);
      return null;
    }
  }

  @Override
  public boolean couldHold(long sizeBytes) {
    return room.couldHold(sizeBytes);
  }

  @Override
  public void failed(IOException e) {
    if (!(e instanceof ClosedChannelException)) {
      errors.increment();
    }
    if (isNoSpace(e)) {
      fullSinceNanos = System.nanoTime();
      turn(TierStatus.State.FULL, "no space left on the disk");
    } else if (String.valueOf(e.getMessage()).contains("Too many open files")) {
      log.warn("tier {}: {}", name(), message(e));
    } else if (e instanceof ClosedChannelException) {
      // An interrupted thread closed the file; it is opened again.
      log.debug("tier {}: {}", name(), e.toString());
    } else {
      fail(message(e));
    }
  }

  @Override
  public void fail(String why) {
    turn(TierStatus.State.FAILED, why);
  }

  @Override
  public long errors() {
    return errors.sum();
  }

  @Override
  public boolean hasFailed() {
    return state == TierStatus.State.FAILED;
  }

  private synchronized void turn(TierStatus.State next, String why) {
    if (state == next || state == TierStatus.State.FAILED) {
      return;
    }
    reason = why;
    state = next;
    log.warn("tier {} is {}: {}; reads continue from the next tier", name(), next, why);
  }

  private boolean hasRoomAgain() {
    if (state != TierStatus.State.FULL || System.nanoTime() - fullSinceNanos < FULL_RETRY_NANOS) {
      return false;
    }
    synchronized (this) {
      fullSinceNanos = System.nanoTime();
      try {
        if (state == TierStatus.State.FULL && room.isDiskFree()) {
          state = TierStatus.State.ON;
          reason = null;
          log.info("tier {} has room again", name());
        }
      } catch (IOException e) {
        failed(e);
      }
      return state == TierStatus.State.ON;
    }
  }

  @Override
  public Census census() {
    return new Count();
  }

  /** Counts the existing copies. */
  private final class Count implements Census {
    private long bytes;
    private long copies;
    private final Map<Long, Long> wanted = new HashMap<>();

    @Override
    public void forEachFile(LongPredicate visitor) throws IOException {
      try {
        files.forEach(visitor);
      } catch (IOException e) {
        failed(e);
        throw e;
      }
    }

    @Override
    public void discard(long number) throws IOException {
      try {
        files.remove(number);
      } catch (IOException e) {
        failed(e);
        throw e;
      }
    }

    @Override
    public void add(@Nullable Extent extent, long sizeBytes) {
      count(extent, sizeBytes, 1);
    }

    @Override
    public void subtract(@Nullable Extent extent, long sizeBytes) {
      count(extent, sizeBytes, -1);
    }

    private void count(@Nullable Extent extent, long sizeBytes, int by) {
      copies += by;
      if (extent == null) {
        bytes += by * Room.charge(sizeBytes);
      } else {
        wanted.merge(extent.bundle(), by * extent.size(), Long::sum);
      }
    }

    @Override
    public void take() {
      synchronized (DirectoryTier.this) {
        if (hasFailed()) {
          return;
        }
        room.found(bytes - fileBytes);
        fileBytes = bytes;
        copyCount.set(copies);
        bundles.count(wanted);
        if (state == TierStatus.State.RECOVERING) {
          reason = null;
          state = TierStatus.State.ON;
        }
      }
    }
  }

  @Override
  public synchronized @Nullable Usage usage() {
    return state == TierStatus.State.ON || state == TierStatus.State.FULL
        ? new Usage(fileBytes, copyCount.get())
        : null;
  }

  @Override
  public TierStatus status() {
    TierStatus.State now = state;
    boolean isFull = now == TierStatus.State.ON && room.wasDiskFull();
    return new TierStatus(
        name(),
        settings.kind(),
        settings.directory().toString(),
        isFull ? TierStatus.State.FULL : now,
        isFull ? KEEP_FREE_REACHED : reason,
        dax == null ? null : dax.verdict(),
        settings.capacityBytes(),
        room.used(),
        copyCount.get());
  }

  @Override
  public void close() {
    // Copies are closed by the code that opened them.
    bundles.close();
    closeQuietly(lock);
  }

  /**
   * Locks the directory: two daemons that count and clear the same directory would take each
   * other's copies for leftovers.
   */
  private static FileChannel lock(Path directory) throws IOException {
    FileChannel file =
        FileChannel.open(directory.resolve("lock"), Set.of(CREATE, WRITE), FILE_MODE);
    try {
      if (file.tryLock() != null) {
        return file;
      }
    } catch (OverlappingFileLockException e) {
      // Locked by this process, which is the same as by another.
    }
    file.close();
    throw new IOException(directory + " is in use by another mount of the same dataset");
  }

  /**
   * The JDK reports the system's message, not its number; the launcher sets the C locale, so the
   * message is fixed.
   */
  private static boolean isNoSpace(IOException e) {
    String message = String.valueOf(e.getMessage());
    return message.contains("No space left on device") || message.contains("Disk quota exceeded");
  }

  private static String message(IOException e) {
    String message = e.getMessage();
    return e instanceof AtomicMoveNotSupportedException || message == null ? e.toString() : message;
  }

  /** An unfinished copy: a file, or nothing until it is written as a whole to a bundle. */
  private final class IncomingCopy implements CopyWriter {
    private final long number;
    private final Path path;

    private long charge; // GUARDED_BY(this); reserved but not settled
    private @Nullable FileChannel file; // GUARDED_BY(this)
    private @Nullable Extent extent; // GUARDED_BY(this)
    private @Nullable CopyReader bundled; // GUARDED_BY(this)
    private boolean committed; // GUARDED_BY(this)
    private boolean closed; // GUARDED_BY(this)

    IncomingCopy(long number, long charge) {
      this.number = number;
      this.charge = charge;
      this.path = files.newPath(number);
    }

    @Override
    public Tier tier() {
      return DirectoryTier.this;
    }

    @Override
    public void allocate(long sizeBytes) throws IOException {
      if (sizeBytes < OpenFile.HUGE_PAGE_BYTES) {
        return;
      }
      try {
        daxFiles.allocate(channel(), sizeBytes);
      } catch (IOException e) {
        failed(e);
        throw e;
      }
    }

    @Override
    public void write(long offset, ByteBuffer source) throws IOException {
      try {
        writeAll(channel(), source, offset);
      } catch (IOException e) {
        failed(e);
        throw e;
      }
    }

    @Override
    public synchronized void append(ByteBuffer source) throws IOException {
      checkOpen();
      try {
        Extent appended = bundles.append(source, charge);
        if (appended == null) {
          throw new IOException("no room for another bundle");
        }
        extent = appended;
        charge = 0;
      } catch (IOException e) {
        failed(e);
        throw e;
      }
    }

    @Override
    public ReadResult read(long offset, int size) throws IOException {
      CopyReader reader = bundled();
      return reader == null
          ? new ReadResult.FileRange(channel(), offset, size)
          : reader.read(offset, size);
    }

    private synchronized @Nullable CopyReader bundled() throws IOException {
      checkOpen();
      if (extent != null && bundled == null) {
        bundled = bundles.open(extent);
      }
      return bundled;
    }

    private synchronized void checkOpen() throws IOException {
      if (closed) {
        throw new IOException("the copy was closed");
      }
    }

    private synchronized FileChannel channel() throws IOException {
      checkOpen();
      FileChannel channel = file;
      if (channel == null) {
        channel = files.create(path);
        file = channel;
      }
      return channel;
    }

    @Override
    public synchronized void shrink(long sizeBytes) {
      long surplus = charge - Room.charge(sizeBytes);
      if (surplus > 0 && !closed && !committed) {
        charge -= surplus;
        room.release(surplus);
      }
    }

    @Override
    public synchronized @Nullable Extent commit() throws IOException {
      if (extent == null) {
        commitFile();
      } else {
        checkOpen();
        copyCount.incrementAndGet();
      }
      committed = true;
      return extent;
    }

    private void commitFile() throws IOException { // GUARDED_BY(this)
      try {
        FileChannel whole = channel();
        if (synced) {
          whole.force(false);
        }
        // In one step, so that when two copies of an inode are committed the replaced one is
        // counted.
        synchronized (DirectoryTier.this) {
          long replaced = files.size(number);
          files.remove(number);
          files.put(path, number);
          if (replaced >= 0) {
            freed(Room.charge(replaced));
          } else {
            copyCount.incrementAndGet();
          }
          fileBytes += charge;
          room.settle(charge);
        }
      } catch (IOException e) {
        failed(e);
        throw e;
      }
    }

    @Override
    public synchronized void close() {
      if (closed) {
        return;
      }
      closed = true;
      boolean made = file != null;
      if (file != null) {
        closeQuietly(file);
      }
      if (bundled != null) {
        bundled.close();
      }
      if (!committed) {
        room.release(charge);
        if (extent != null) {
          bundles.drop(extent);
        }
        if (made) {
          try {
            Files.deleteIfExists(path);
          } catch (IOException e) {
            failed(e);
          }
        }
      }
    }
  }

  /** Writes all remaining bytes at an offset. */
  static void writeAll(FileChannel file, ByteBuffer source, long offset) throws IOException {
    long position = offset;
    int end = source.limit();
    while (source.position() < end) {
      source.limit(Math.min(end, source.position() + WRITE_BYTES));
      position += file.write(source, position);
    }
  }

  private static void closeQuietly(FileChannel file) {
    try {
      file.close();
    } catch (IOException e) {
      log.debug("closing a copy: {}", e.getMessage());
    }
  }
}
