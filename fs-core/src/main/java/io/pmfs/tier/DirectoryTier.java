package io.pmfs.tier;

import static java.nio.file.StandardOpenOption.READ;

import io.pmfs.metadata.Extent;
import io.pmfs.posix.DaemonThread;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.FileChannel;
import java.nio.file.AtomicMoveNotSupportedException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
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

  private static final String KEEP_FREE_REACHED = "its disk has no free space beyond --keep-free";

  /** A tier has about 128 bundles, at most a few thousand: each is an open file. */
  private static final int BUNDLES = 128;

  private static final long SMALLEST_BUNDLE_BYTES = 64 << 10;
  private static final long LARGEST_BUNDLE_BYTES = 512 << 20;

  /** The tier's lock file, touched when the tier is opened and closed. */
  public static final String LOCK = "lock";

  static final FileAttribute<?> DIRECTORY_MODE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
  static final FileAttribute<?> FILE_MODE =
      PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------"));

  private final TierSettings settings;
  private final CopyFiles files;
  private final TierLock lock;
  private final RememberedDisk disk;
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

  private final TierHealth health;

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
    this.lock = new TierLock(settings.directory());
    files.clearIncoming();
    this.dax = daxFiles == null ? null : DaxProbe.probe(files.incoming(), daxFiles, Path.of("/"));
    this.synced = dax != null && dax.isReal();
    this.daxFiles = daxFiles != null && isDirect() ? daxFiles : DaxFiles.NONE;
    FileStore store = Files.getFileStore(settings.directory());
    this.disk =
        new RememberedDisk(
            store::getUsableSpace, question -> DaemonThread.start("tier-room", question));
    this.room = new Room(settings.capacityBytes(), settings.keepFreeBytes(), disk);
    this.bundles =
        new Bundles(
            new BundleFiles(settings.directory().resolve(BundleFiles.DIRECTORY), synced),
            bundleBytes(settings.capacityBytes()),
            room);
    boolean noFiles = files.isEmpty();
    boolean isEmpty = noFiles && bundles.isEmpty();
    if (usage != null && !isEmpty) {
      copyCount.set(usage.copies());
      fileBytes = noFiles ? 0 : usage.fileBytes();
      room.found(fileBytes);
    }
    this.health = new TierHealth(settings.name(), usage != null || isEmpty);
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
    if (health.hasFailed()) {
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
    if (health.hasFailed()) {
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
    return health.hasFailed() ? null : files.path(number);
  }

  @Override
  public boolean isDirect() {
    return dax != null && dax.isDirect();
  }

  @Override
  public @Nullable CopyWriter create(long number, long sizeBytes) {
    if (!couldHold(sizeBytes)) {
      return null;
    }
    long charge = Room.charge(sizeBytes);
    try {
      if (!health.isOnAgain(room::isDiskFree)) {
        return null;
      }
      files.checkPlace();
      if (room.reserve(charge)) {
        return incoming(number, charge);
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
  public @Nullable Linked link(long number, Lent lent) {
    try {
      if (!health.isOnAgain(room::isDiskFree)) {
        return null;
      }
      files.checkPlace();
    } catch (IOException e) {
      failed(e);
      return null;
    }
    Path file = LentFiles.path(lent.tier(), lent.number(), lent.extent());
    try {
      if (lent.extent() == null) {
        return linkFile(number, file, Room.charge(lent.sizeBytes())) ? new Linked(null) : null;
      }
      Object key = Files.getAttribute(file, "unix:fileKey", LinkOption.NOFOLLOW_LINKS);
      Extent linked = bundles.link(file, key, lent.extent());
      if (linked != null) {
        countOneMore();
      }
      return linked == null ? null : new Linked(linked);
    } catch (IOException | UnsupportedOperationException e) {
      // Removed meanwhile, on another disk, or with too many links.
      log.debug("cannot link {}: {}", file, e.toString());
      return null;
    }
  }

  private synchronized boolean linkFile(long number, Path file, long charge) throws IOException {
    if (files.size(number) >= 0 || !room.take(charge)) {
      return false;
    }
    boolean isLinked = false;
    try {
      files.link(file, number);
      fileBytes += charge;
      countOneMore();
      isLinked = true;
      return true;
    } finally {
      if (!isLinked) {
        room.free(charge);
      }
    }
  }

  private IncomingFile incoming(long number, long charge) {
    return new IncomingFile(this, files, bundles, room, number, charge);
  }

  /** Lays out a mapped file in pieces of 2 MiB. */
  void allocate(FileChannel file, long sizeBytes) throws IOException {
    daxFiles.allocate(file, sizeBytes);
  }

  /** Makes a complete file the copy of an inode, and settles its reservation. */
  void put(FileChannel file, Path path, long number, long charge) throws IOException {
    if (synced) {
      file.force(false);
    }
    // In one step, so that a copy replaced by a concurrent commit of the same inode is counted.
    synchronized (this) {
      long replaced = files.size(number);
      files.remove(number);
      files.put(path, number);
      if (replaced >= 0) {
        freed(Room.charge(replaced));
      } else {
        countOneMore();
      }
      fileBytes += charge;
      room.settle(charge);
    }
  }

  /** Counts a copy that was committed. */
  void countOneMore() {
    copyCount.incrementAndGet();
  }

  @Override
  public synchronized void remove(long number, @Nullable Extent extent, long sizeBytes) {
    if (health.hasFailed()) {
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
    return health.isOn() ? bundles.sparse() : Set.of();
  }

  @Override
  public @Nullable Extent move(Extent extent, ByteBuffer through) {
    long charge = Room.charge(extent.size());
    if (!health.isOn()) {
      return null;
    }
    try {
      if (!room.move(charge)) {
        return null;
      }
      IncomingFile copy = incoming(0, charge);
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
      health.countError();
    }
    if (isNoSpace(e)) {
      health.fill("no space left on the disk");
    } else if (isOfThisProcess(e)) {
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
    health.fail(why);
  }

  @Override
  public long errors() {
    return health.errors();
  }

  @Override
  public boolean hasFailed() {
    return health.hasFailed();
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
        health.counted();
      }
    }
  }

  @Override
  public synchronized @Nullable Usage usage() {
    return health.isCounted() ? new Usage(fileBytes, copyCount.get()) : null;
  }

  @Override
  public TierStatus status() {
    TierStatus.State now = health.state();
    boolean isFull = now == TierStatus.State.ON && room.wasDiskFull();
    return new TierStatus(
        name(),
        settings.kind(),
        settings.directory().toString(),
        isFull ? TierStatus.State.FULL : now,
        isFull ? KEEP_FREE_REACHED : health.reason(),
        dax == null ? null : dax.verdict(),
        settings.capacityBytes(),
        room.used(),
        copyCount.get());
  }

  @Override
  public long availableBytes() {
    return health.acceptsLater() ? room.available(disk.recentlyUsableBytes()) : 0;
  }

  @Override
  public void close() {
    // Copies are closed by the code that opened them.
    bundles.close();
    lock.close();
  }

  /**
   * The JDK reports the system's message, not its number; the launcher sets the C locale, so the
   * message is fixed.
   */
  private static boolean isNoSpace(IOException e) {
    String message = String.valueOf(e.getMessage());
    return message.contains("No space left on device") || message.contains("Disk quota exceeded");
  }

  /** Whether the disk is all right, but a limit of this process (ulimit) was reached. */
  private static boolean isOfThisProcess(IOException e) {
    String message = String.valueOf(e.getMessage());
    return message.contains("Too many open files") || message.contains("File too large");
  }

  private static String message(IOException e) {
    String message = e.getMessage();
    return e instanceof AtomicMoveNotSupportedException || message == null ? e.toString() : message;
  }
}
