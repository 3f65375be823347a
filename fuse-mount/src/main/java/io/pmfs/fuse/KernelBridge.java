package io.pmfs.fuse;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.MountException.Reason;
import io.pmfs.metadata.FileName;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The FUSE protocol on /dev/fuse: inodes as the kernel names them, listings with attributes, reads
 * of up to 1 MiB that are sent from where their bytes lie. Mounts by mount(2), so for root only.
 */
public final class KernelBridge implements Bridge {
  private static final Logger log = LoggerFactory.getLogger(KernelBridge.class);

  public static final long ALL_KERNEL_FLAGS = -1;

  /**
   * Workers that read-ahead cannot take: names are answered while all reads wait for the source.
   */
  private static final int KEPT_FOR_NAMES = 8;

  private static final LibC LIBC = LibC.INSTANCE;
  private static final int MS_RDONLY = 1;
  private static final int MS_NOSUID = 2;
  private static final int MS_NODEV = 4;

  private final MountOptions options;
  private final PmfsFileSystem fileSystem;
  private final ReadMode readMode;
  private final int workerCount;
  private final @Nullable SharedSession session;
  private final CountDownLatch ended = new CountDownLatch(1);
  private volatile @Nullable BackingFiles backing;
  private final long kernelFlags;
  private volatile @Nullable KernelWorkers workers;

  /** Notices are sent with the read lock held, the device is closed with the write lock. */
  private final ReadWriteLock deviceLock = new ReentrantReadWriteLock();

  private @Nullable KernelNotices notices; // GUARDED_BY(deviceLock)

  /**
   * A bridge that is not mounted yet.
   *
   * @param readMode what to offer the kernel; it may decline
   * @param workerCount how many requests may be in progress at once: as many as may wait for the
   *     source
   * @param session a connection that others keep; null to make one that ends with this process
   * @param kernelFlags flags of INIT that count if the kernel offers them: {@link
   *     #ALL_KERNEL_FLAGS}, or fewer to do as with an older one
   */
  public KernelBridge(
      PmfsFileSystem fileSystem,
      MountOptions options,
      ReadMode readMode,
      int workerCount,
      @Nullable SharedSession session,
      long kernelFlags) {
    this.fileSystem = fileSystem;
    this.options = options;
    this.readMode = readMode;
    this.workerCount = workerCount;
    this.session = session;
    this.kernelFlags = kernelFlags;
  }

  /**
   * Whether this process may mount: root in the initial user namespace may, others need a
   * set-user-id program.
   */
  public static boolean isAvailable() {
    return LIBC.geteuid() == 0;
  }

  @Override
  public String name() {
    return "kernel";
  }

  @Override
  public ReadMode readMode() {
    BackingFiles files = backing;
    return files == null || files.unavailable() != null ? ReadMode.PAGE_CACHE : readMode;
  }

  @Override
  public String readModeReason() {
    BackingFiles files = backing;
    String unavailable = files == null ? null : files.unavailable();
    return unavailable == null ? "" : "no passthrough: " + unavailable;
  }

  @Override
  public void mount(Duration timeout) throws MountException {
    SharedSession given = session;
    int device = given == null ? open() : given.descriptor();
    boolean resumed = given != null && given.resumed();
    if (!resumed) {
      mount(device);
    }
    BackingFiles files = readMode == ReadMode.PASSTHROUGH ? backingFiles(device) : null;
    backing = files;
    KernelOperations operations =
        new KernelOperations(
            fileSystem,
            options.timeout().toSeconds(),
            files,
            kernelFlags,
            Math.max(1, workerCount - KEPT_FOR_NAMES));
    KernelWorkers started =
        new KernelWorkers(
            device, operations, workerCount, given != null, this::abort, () -> end(device));
    setNotices(new KernelNotices(new DeviceChannel(device)));
    workers = started;
    started.start(resumed);
    Probe.await(options.mountpoint(), timeout, ended, this);
    ReadAhead.set(options.mountpoint());
  }

  private void setNotices(@Nullable KernelNotices by) {
    deviceLock.writeLock().lock();
    try {
      notices = by;
    } finally {
      deviceLock.writeLock().unlock();
    }
  }

  private void end(int device) {
    BackingFiles files = backing;
    if (files != null) {
      files.close();
    }
    setNotices(null);
    LIBC.close(device);
    ended.countDown();
  }

  /** Readers that wait get an error, later ones find what was below the mount. */
  private void abort() {
    int flags = Posix.MNT_FORCE | Posix.MNT_DETACH | Posix.UMOUNT_NOFOLLOW;
    if (LIBC.umount2(Posix.terminated(options.mountpoint().toString()), flags) != 0) {
      log.error("{} cannot be unmounted: {}", options.mountpoint(), Posix.errno());
    }
  }

  private BackingFiles backingFiles(int device) throws MountException {
    SharedSession given = session;
    try {
      BackingLedger ledger = given == null ? null : new BackingLedger(given.ledger());
      return new BackingFiles(fileSystem, new DeviceRegistry(device), ledger);
    } catch (IOException e) {
      throw new MountException(
          Reason.FAILED, given + ": the ledger of backing files: " + e.getMessage(), e);
    }
  }

  private static int open() throws MountException {
    int device = LIBC.open(Posix.terminated("/dev/fuse"), Posix.O_RDWR | Posix.O_CLOEXEC);
    if (device < 0) {
      throw new MountException(
          Reason.UNAVAILABLE, "/dev/fuse cannot be opened: " + Posix.errno(), null);
    }
    return device;
  }

  private void mount(int device) throws MountException {
    String data =
        "fd="
            + device
            + ",rootmode=40000,user_id=0,group_id=0,default_permissions,max_read="
            + KernelProtocol.MAX_READ_BYTES
            + (options.allowOther() ? ",allow_other" : "");
    String mountpoint = options.mountpoint().toString();
    int result =
        LIBC.mount(
            Posix.terminated(options.source()),
            Posix.terminated(mountpoint),
            Posix.terminated("fuse.pmfs"),
            MS_RDONLY | MS_NOSUID | MS_NODEV,
            Posix.terminated(data));
    if (result != 0) {
      Errno errno = Posix.errno();
      LIBC.close(device);
      ended.countDown();
      throw new MountException(
          errno == Errno.EPERM ? Reason.UNAVAILABLE : Reason.FAILED,
          mountpoint + " cannot be mounted: " + errno,
          null);
    }
  }

  @Override
  public boolean outlivesProcess() {
    return session != null;
  }

  @Override
  public boolean hasIdleWorker() {
    KernelWorkers started = workers;
    return started == null || started.hasIdle();
  }

  @Override
  public boolean freeze(Duration timeout) throws InterruptedException {
    KernelWorkers started = workers;
    return session != null && started != null && started.freeze(options.mountpoint(), timeout);
  }

  @Override
  public boolean invalidateInode(long inode) throws FsException {
    return tell(by -> by.invalidateInode(inode));
  }

  @Override
  public boolean invalidateEntry(long directory, FileName name) throws FsException {
    return tell(by -> by.invalidateEntry(directory, name));
  }

  /** A message to the kernel. */
  @FunctionalInterface
  private interface Notice {
    boolean send(KernelNotices by) throws FsException;
  }

  private boolean tell(Notice notice) throws FsException {
    if (KernelWorkers.isWorker()) {
      throw new IllegalStateException("a thread that answers requests may not send notices");
    }
    deviceLock.readLock().lock();
    try {
      KernelNotices by = notices;
      return by != null && notice.send(by);
    } finally {
      deviceLock.readLock().unlock();
    }
  }

  @Override
  public void unmount(boolean lazy) throws MountException {
    if (ended.getCount() == 0) {
      return;
    }
    log.info("unmounting {}{}", options.mountpoint(), lazy ? ", lazily" : "");
    Unmount.unmount(options.mountpoint(), lazy);
  }

  @Override
  public boolean awaitEnd(Duration timeout) throws InterruptedException {
    return ended.await(timeout.toMillis(), TimeUnit.MILLISECONDS);
  }
}
