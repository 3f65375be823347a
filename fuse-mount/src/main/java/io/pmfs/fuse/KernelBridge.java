package io.pmfs.fuse;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.MountException.Reason;
import io.pmfs.tier.Errno;
import io.pmfs.tier.FsException;
import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The FUSE protocol on /dev/fuse: inodes as the kernel names them, listings with attributes, reads
 * of up to 1 MiB that are sent from where their bytes lie. Mounts by mount(2), so for root only.
 */
public final class KernelBridge implements Bridge {
  private static final Logger log = LoggerFactory.getLogger(KernelBridge.class);

  private static final LibC LIBC = LibC.INSTANCE;
  private static final int O_RDWR = 2;
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
  private final RequestGate gate = new RequestGate();
  private final AtomicInteger workers = new AtomicInteger();

  /**
   * A bridge that is not mounted yet.
   *
   * @param readMode what to offer the kernel; it may decline
   * @param workerCount how many requests may be in progress at once: as many as may wait for the
   *     source
   * @param session a connection that others keep; null to make one that ends with this process
   */
  public KernelBridge(
      PmfsFileSystem fileSystem,
      MountOptions options,
      ReadMode readMode,
      int workerCount,
      @Nullable SharedSession session) {
    this.fileSystem = fileSystem;
    this.options = options;
    this.readMode = readMode;
    this.workerCount = workerCount;
    this.session = session;
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
    DeviceChannel channel = new DeviceChannel(device);
    KernelOperations operations =
        new KernelOperations(fileSystem, options.timeout().toSeconds(), files);
    workers.set(workerCount);
    for (int i = 1; i <= workerCount; i++) {
      KernelWorker worker = new KernelWorker(channel, operations, gate, this::abort);
      Thread thread = new Thread(() -> serve(worker, device), "fuse-" + i);
      thread.setDaemon(true);
      thread.start();
    }
    if (resumed) {
      // Without a probe: a thread of ours that waits for our answer cannot be killed (Heartbeat).
      resume(channel);
      return;
    }
    Probe.await(options.mountpoint(), timeout, ended, this);
    ReadAhead.set(options.mountpoint());
  }

  private void serve(KernelWorker worker, int device) {
    try {
      worker.run();
    } finally {
      if (workers.decrementAndGet() == 0) {
        BackingFiles files = backing;
        if (files != null) {
          files.close();
        }
        LIBC.close(device);
        ended.countDown();
      }
    }
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
    int device = LIBC.open(Posix.terminated("/dev/fuse"), O_RDWR | Posix.O_CLOEXEC);
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

  /** Has the kernel send again what the process before this one had taken and not answered. */
  private static void resume(DeviceChannel channel) {
    try {
      channel.askToResend();
      log.info("going on with a session that was open; the kernel sends again what was in flight");
    } catch (FsException e) {
      log.warn("the kernel cannot send again what was in flight ({}); it may hang", e.getMessage());
    }
  }

  @Override
  public boolean outlivesProcess() {
    return session != null;
  }

  @Override
  public boolean hasIdleWorker() {
    return gate.inProgress() < workers.get();
  }

  @Override
  public boolean freeze(Duration timeout) throws InterruptedException {
    return session != null && gate.shut(timeout);
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
