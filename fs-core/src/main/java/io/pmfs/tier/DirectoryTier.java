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
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Copies in one directory, on a local disk or on a file system on persistent memory: as plain
 * files, or small ones together in {@link Bundles}. Survives restart; anything unreadable counts as
 * absent.
 *
 * <p>On persistent memory a copy is synced before it is made visible. Elsewhere nothing is: after a
 * crash of the machine a file may hold other bytes than were written, which its checksums tell.
 */
public final class DirectoryTier implements Tier {
  private static final Logger log = LoggerFactory.getLogger(DirectoryTier.class);

  /** How long a full disk is left alone before it is asked for room again. */
  private static final long FULL_RETRY_NANOS = 10_000_000_000L;

  private static final int COUNTING_ATTEMPTS = 5;

  /** Larger writes cost three times the processor time on ext4; see docs/decisions/0020. */
  private static final int WRITE_BYTES = 256 << 10;

  /** A tier has some 128 bundles, or a few thousand: each is an open file. */
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

  /** For files that are mapped: nothing of it where they are not. */
  private final DaxFiles daxFiles;

  private final boolean synced;

  private final AtomicLong copyCount;
  private long removedInRecovery; // GUARDED_BY(this)

  private volatile TierStatus.State state;
  private final LongAdder errors = new LongAdder();
  private volatile @Nullable String reason;
  private volatile long fullSinceNanos;

  /** A tier that asks the system for nothing that the JDK has no call for. */
  public DirectoryTier(TierSettings settings, @Nullable Usage usage) throws IOException {
    this(settings, usage, DaxFiles.NONE);
  }

  /**
   * Opens the directory, making it if it is not there, and drops what an earlier session left half
   * written.
   *
   * @param usage what the last clean stop counted; null to count anew, for which {@link #recover}
   *     must be called
   * @throws IOException if the directory cannot be made, read or written
   */
  public DirectoryTier(TierSettings settings, @Nullable Usage usage, DaxFiles daxFiles)
      throws IOException {
    this.settings = settings;
    this.files = new CopyFiles(settings.directory());
    this.lock = lock(settings.directory());
    files.clearIncoming();
    this.dax =
        settings.kind() == TierKind.PM
            ? DaxProbe.probe(files.incoming(), daxFiles, Path.of("/"))
            : null;
    this.synced = dax != null && dax.isReal();
    this.daxFiles = isDirect() ? daxFiles : DaxFiles.NONE;
    FileStore disk = Files.getFileStore(settings.directory());
    this.room = new Room(settings.capacityBytes(), settings.keepFreeBytes(), disk::getUsableSpace);
    this.bundles =
        new Bundles(
            new BundleFiles(settings.directory().resolve("bundles"), synced),
            bundleBytes(settings.capacityBytes()),
            room);
    boolean counted = usage != null || (files.isEmpty() && bundles.isEmpty());
    this.copyCount = new AtomicLong(usage == null ? 0 : usage.copies());
    if (counted) {
      room.found(usage == null ? 0 : usage.fileBytes());
      room.found(bundles.count(usage == null ? Map.of() : usage.bundles()));
    }
    this.state = counted ? TierStatus.State.ON : TierStatus.State.RECOVERING;
    this.reason = counted ? null : "not yet compared with the records";
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
      try {
        return bundles.open(extent);
      } catch (IOException e) {
        failed(e);
        throw e;
      }
    }
    FileChannel file;
    try {
      file = FileChannel.open(files.path(number), READ);
    } catch (NoSuchFileException e) {
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
      return room.reserve(charge) ? new IncomingCopy(number, charge) : null;
    } catch (IOException e) {
      failed(e);
      return null;
    }
  }

  @Override
  public synchronized void remove(long number, @Nullable Extent extent) {
    if (state == TierStatus.State.FAILED) {
      return;
    }
    if (extent != null) {
      bundles.drop(extent);
      countRemoved(0);
      return;
    }
    try {
      long size = files.remove(number);
      if (size >= 0) {
        countRemoved(Room.charge(size));
      }
    } catch (IOException e) {
      failed(e);
    }
  }

  private synchronized void countRemoved(long bytes) {
    if (state == TierStatus.State.RECOVERING) {
      removedInRecovery++;
    } else {
      room.free(bytes);
      copyCount.decrementAndGet();
    }
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
      // An interrupted thread took the file with it; it is opened again.
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
    log.warn("tier {} is {}: {}; reads go on from the next tier", name(), next, why);
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
  public void recover(CopyRecords records) {
    if (state != TierStatus.State.RECOVERING) {
      // It takes copies, which are there before they are known.
      return;
    }
    // What is removed while the files are counted may be in the count or not: count again then.
    for (int attempt = 1; ; attempt++) {
      long removedBefore;
      synchronized (this) {
        removedBefore = removedInRecovery;
      }
      Usage usage;
      try {
        usage = count(records);
      } catch (IOException e) {
        failed(e);
        return;
      }
      synchronized (this) {
        if (removedInRecovery == removedBefore || attempt == COUNTING_ATTEMPTS) {
          if (state == TierStatus.State.RECOVERING) {
            take(usage);
          }
          return;
        }
      }
    }
  }

  private synchronized void take(Usage usage) {
    try {
      room.found(usage.fileBytes());
      room.found(bundles.count(usage.bundles()));
      copyCount.addAndGet(usage.copies());
      reason = null;
      state = TierStatus.State.ON;
    } catch (IOException e) {
      failed(e);
    }
  }

  /** What is there; what is not known is removed, but for bundles. */
  private Usage count(CopyRecords records) throws IOException {
    AtomicLong bytes = new AtomicLong();
    AtomicLong count = new AtomicLong();
    files.forEach(
        records::hasFile,
        size -> {
          bytes.addAndGet(Room.charge(size));
          count.incrementAndGet();
        });
    Map<Long, Long> wanted = new HashMap<>();
    records.forEachExtent(
        extent -> {
          wanted.merge(extent.bundle(), extent.size(), Long::sum);
          count.incrementAndGet();
        });
    return new Usage(bytes.get(), count.get(), wanted);
  }

  @Override
  public synchronized @Nullable Usage usage() {
    if (state != TierStatus.State.ON && state != TierStatus.State.FULL) {
      return null;
    }
    return new Usage(
        room.used() - bundles.bytes(), copyCount.get(), Map.copyOf(bundles.wantedBytes()));
  }

  @Override
  public TierStatus status() {
    return new TierStatus(
        name(),
        settings.kind(),
        settings.directory().toString(),
        state,
        reason,
        dax == null ? null : dax.verdict(),
        settings.capacityBytes(),
        room.used(),
        copyCount.get());
  }

  @Override
  public void close() {
    // Copies are closed by those who opened them.
    bundles.close();
    closeQuietly(lock);
  }

  /**
   * Two daemons that count and clear the same directory would take each other's copies for
   * leftovers.
   */
  private static FileChannel lock(Path directory) throws IOException {
    FileChannel file =
        FileChannel.open(directory.resolve("lock"), Set.of(CREATE, WRITE), FILE_MODE);
    try {
      if (file.tryLock() != null) {
        return file;
      }
    } catch (OverlappingFileLockException e) {
      // Held by this process: as good as by another.
    }
    file.close();
    throw new IOException(directory + " is in use by another mount of the same dataset");
  }

  /**
   * The JDK gives the system's words, not its number; the launcher sets the C locale, so the words
   * are fixed.
   */
  private static boolean isNoSpace(IOException e) {
    String message = String.valueOf(e.getMessage());
    return message.contains("No space left on device") || message.contains("Disk quota exceeded");
  }

  private static String message(IOException e) {
    String message = e.getMessage();
    return e instanceof AtomicMoveNotSupportedException || message == null ? e.toString() : message;
  }

  /** A copy in the making: a file, or nothing before it is written whole to a bundle. */
  private final class IncomingCopy implements CopyWriter {
    private final long number;
    private final Path path;

    private long charge; // GUARDED_BY(this); what is reserved and not settled
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
          throw new IOException("there is no bundle for it");
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
        channel = CopyFiles.create(path);
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
        room.settle(charge);
      } else {
        checkOpen();
      }
      committed = true;
      copyCount.incrementAndGet();
      return extent;
    }

    private void commitFile() throws IOException {
      try {
        FileChannel whole = channel();
        if (synced) {
          whole.force(false);
        }
        // Together, so that of two copies of one inode the replaced one is always accounted for.
        synchronized (DirectoryTier.this) {
          remove(number, null);
          files.put(path, number);
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
