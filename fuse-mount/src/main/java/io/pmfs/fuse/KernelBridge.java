package io.pmfs.fuse;

import io.pmfs.fs.PmfsFileSystem;
import io.pmfs.fuse.mounting.MountException;
import io.pmfs.fuse.mounting.MountException.Reason;
import io.pmfs.fuse.mounting.MountSpec;
import io.pmfs.fuse.mounting.Mounting;
import io.pmfs.fuse.mounting.SessionMount;
import io.pmfs.fuse.mounting.SharedSession;
import io.pmfs.fuse.protocol.AnswerBuffers;
import io.pmfs.fuse.protocol.AskedRequest;
import io.pmfs.fuse.protocol.RequestLatencies;
import io.pmfs.fuse.protocol.RequestListener;
import io.pmfs.fuse.system.LibC;
import io.pmfs.posix.AvailableMemory;
import io.pmfs.writable.WritableFileSystem;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The FUSE protocol on /dev/fuse: inodes as the kernel numbers them, listings with attributes, and
 * reads of up to 1 MiB that are sent without copying where possible. Mounts by mount(2) as root, by
 * fusermount for other users.
 */
public final class KernelBridge implements Bridge {
  private static final Logger log = LoggerFactory.getLogger(KernelBridge.class);

  public static final long ALL_KERNEL_FLAGS = -1;

  /**
   * Workers that read-ahead cannot occupy: they answer lookups while all reads wait for the source.
   */
  private static final int KEPT_FOR_NAMES = 8;

  private static final LibC LIBC = LibC.INSTANCE;

  private final MountSpec options;
  private final Shown shown;
  private final ReadMode readMode;
  private final Workforce workforce;
  private final @Nullable SharedSession session;
  private final SessionMount own;
  private final Mounting mounting;
  private final @Nullable String noPassthrough;
  private final CountDownLatch ended = new CountDownLatch(1);
  private volatile @Nullable BackingFiles backing;
  private final long kernelFlags;
  private volatile @Nullable KernelWorkers workers;
  private volatile boolean answered;
  private volatile boolean failed;

  /**
   * A bridge that is not mounted yet.
   *
   * @param readMode the mode to offer to the kernel, which may decline it
   * @param workerCount how many requests may be in progress at once, which also limits how many may
   *     wait for the source
   * @param session a connection that another process keeps open; null to open one that ends with
   *     this process
   * @param kernelFlags the INIT flags to accept if the kernel offers them: {@link
   *     #ALL_KERNEL_FLAGS}, or fewer to behave as with an older kernel
   */
  public KernelBridge(
      PmfsFileSystem fileSystem,
      MountSpec options,
      ReadMode readMode,
      int workerCount,
      @Nullable SharedSession session,
      long kernelFlags) {
    this(
        new Shown.Dataset(fileSystem),
        options,
        readMode,
        new Workforce(workerCount, workerCount, options.maxReadBytes()),
        session,
        kernelFlags);
  }

  /**
   * A bridge to a file system that can be changed. Each worker has 2 MiB of direct memory.
   *
   * @param mostWorkers how many there may be while requests wait
   */
  public static KernelBridge ofWritable(
      WritableFileSystem outputs,
      MountSpec options,
      int workerCount,
      int mostWorkers,
      @Nullable SharedSession session,
      long kernelFlags) {
    return new KernelBridge(
        new Shown.Outputs(outputs),
        options,
        ReadMode.PAGE_CACHE,
        new Workforce(workerCount, mostWorkers, options.maxReadBytes()),
        session,
        kernelFlags);
  }

  private KernelBridge(
      Shown shown,
      MountSpec options,
      ReadMode readMode,
      Workforce workforce,
      @Nullable SharedSession session,
      long kernelFlags) {
    this.shown = shown;
    this.options = options;
    this.readMode = readMode;
    this.workforce = workforce;
    this.session = session;
    this.kernelFlags = kernelFlags;
    this.own = new SessionMount(options.mountpoint(), session == null ? null : session.device());
    this.mounting = Mounting.of(options, session, own);
    this.noPassthrough = mounting.noPassthrough();
    if (readMode == ReadMode.PASSTHROUGH && noPassthrough != null) {
      log.warn(
          "no passthrough: {}; files are read through the daemon and the page cache",
          noPassthrough);
    }
  }

  /**
   * Whether {@link #further} works. Root binds the existing session instead, and a session in
   * passthrough would need backing files of its own, which users do not have.
   */
  boolean canServeFurther() {
    return shown instanceof Shown.Dataset && session == null && LIBC.geteuid() != 0;
  }

  /**
   * The same file system at another mount point, not mounted yet: a separate session that counts
   * into the same statistics.
   *
   * @param memory of its workers, which limits its reads
   */
  KernelBridge further(Path mountpoint, AnswerBuffers memory) {
    return new KernelBridge(
        shown,
        options.at(mountpoint, memory.maxBytes()),
        ReadMode.PAGE_CACHE,
        new Workforce(workforce.count(), workforce.count(), workforce.latencies(), memory),
        null,
        kernelFlags);
  }

  @Override
  public String name() {
    return "kernel";
  }

  @Override
  public ReadMode readMode() {
    BackingFiles files = backing;
    return files == null ? ReadMode.PAGE_CACHE : files.readMode();
  }

  @Override
  public String readModeReason() {
    BackingFiles files = backing;
    if (files != null) {
      return files.readModeReason();
    }
    return readMode == ReadMode.PAGE_CACHE || noPassthrough == null
        ? ""
        : "no passthrough: " + noPassthrough;
  }

  @Override
  public RequestLatencies latencies() {
    return workforce.latencies();
  }

  @Override
  public void listen(RequestListener listener) {
    workforce.latencies().listen(listener);
  }

  @Override
  public List<AskedRequest> waiting(long leastNanos) {
    KernelWorkers started = workers;
    return started == null ? List.of() : started.waiting(leastNanos);
  }

  @Override
  public long opensLeftToKernel() {
    BackingFiles files = backing;
    return files == null ? 0 : files.left();
  }

  @Override
  public long bytesLeftToKernel() {
    BackingFiles files = backing;
    return files == null ? 0 : files.leftBytes();
  }

  @Override
  public long sourceBytesLeftToKernel() {
    BackingFiles files = backing;
    return files == null ? 0 : files.leftSourceBytes();
  }

  @Override
  public void mount(Duration timeout) throws MountException {
    SharedSession given = session;
    boolean resumed = given != null && given.resumed();
    int device = given != null && resumed ? given.descriptor() : mountNow(timeout);
    own.recognize(device);
    mounting.mounted();
    try {
      RequestHandler handler = handler(device, resumed);
      KernelWorkers started =
          new KernelWorkers(
              device,
              handler,
              workforce,
              given != null,
              this::fail,
              () -> leave(device),
              this::end);
      workers = started;
      started.start(resumed);
    } catch (OutOfMemoryError e) {
      abort();
      leave(device);
      end();
      throw new MountException(Reason.FAILED, options.mountpoint() + ": " + e.getMessage(), e);
    }
    if (resumed) {
      // Without a probe: a thread of this process that waits for this process's answer cannot be
      // killed (Heartbeat).
      answered = true;
      return;
    }
    if (mounting.isSeenHere()) {
      Probe.await(options.mountpoint(), timeout, ended, this);
    }
    answered = true;
    mounting.setReadAhead();
  }

  private int mountNow(Duration timeout) throws MountException {
    try {
      return mounting.mount(timeout);
    } catch (Throwable e) {
      ended.countDown();
      throw e;
    }
  }

  private void leave(int device) {
    BackingFiles files = backing;
    if (files != null) {
      files.close();
    }
    LIBC.close(device);
  }

  private void end() {
    mounting.ended();
    ended.countDown();
  }

  /**
   * Called when this process can no longer serve. Either another process serves the session, or the
   * session ends at once, despite requests in progress. It must not stay without a server.
   */
  private void fail() {
    failed = true;
    // A session that was taken over has readers and a supervisor even before this process answers.
    if (session == null || !(answered || session.resumed())) {
      abort();
    }
    if (session != null) {
      ended.countDown();
    }
  }

  /** Ends the guard of a mount that failed, while this process continues. */
  void abandon() {
    if (hasEnded()) {
      mounting.ended();
    }
  }

  private void abort() {
    try {
      mounting.abort();
    } catch (MountException e) {
      log.error("{} cannot be unmounted: {}", options.mountpoint(), e.getMessage());
    }
  }

  private RequestHandler handler(int device, boolean resumed) throws MountException {
    int backgroundMax = Math.max(1, workforce.count() - KEPT_FOR_NAMES);
    long validSeconds = options.timeout().toSeconds();
    if (shown instanceof Shown.Outputs outputs) {
      return new WritableOperations(
          outputs.fileSystem(),
          validSeconds,
          DirectWrites.arePossible(),
          kernelFlags,
          backgroundMax,
          options.allowOther() ? AccessRule.LISTS : AccessRule.MODES);
    }
    PmfsFileSystem read = ((Shown.Dataset) shown).fileSystem();
    BackingFiles files =
        readMode == ReadMode.PAGE_CACHE || noPassthrough != null
            ? null
            : backingFiles(read, device);
    backing = files;
    AccessRule rule = AccessRule.of(read.accessLists(), options.allowOther(), resumed);
    return new KernelOperations(read, validSeconds, files, kernelFlags, backgroundMax, rule);
  }

  private BackingFiles backingFiles(PmfsFileSystem read, int device) throws MountException {
    SharedSession given = session;
    try {
      BackingLedger ledger = given == null ? null : new BackingLedger(given.ledger());
      ReadModeChoice choice =
          readMode == ReadMode.AUTO ? new ReadModeChoice(read, AvailableMemory.HERE::bytes) : null;
      return new BackingFiles(read, new DeviceRegistry(device), ledger, choice);
    } catch (IOException e) {
      throw new MountException(
          Reason.FAILED,
          (given == null ? "" : given.ledger() + ": ")
              + "cannot open the ledger of backing files: "
              + e.getMessage(),
          e);
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
  public boolean waitsInRoot() {
    KernelWorkers started = workers;
    return started != null && started.waitInRoot();
  }

  @Override
  public long answered() {
    KernelWorkers started = workers;
    return started == null ? 0 : started.answered();
  }

  /**
   * After the end of the session, its device number may identify another mount at the same place.
   */
  @Override
  public boolean isAtMountpoint() {
    return !hasEnded() && (!mounting.isSeenHere() || own.isAtMountpoint());
  }

  boolean hasEnded() {
    return ended.getCount() == 0;
  }

  @Override
  public @Nullable String device() {
    return own.device();
  }

  @Override
  public boolean hasFailed() {
    return failed;
  }

  @Override
  public boolean freeze(Duration timeout) throws InterruptedException {
    KernelWorkers started = workers;
    return session != null && started != null && started.freeze(options.mountpoint(), timeout);
  }

  @Override
  public void unmount(boolean lazy) throws MountException {
    if (hasEnded()) {
      return;
    }
    log.info("unmounting {}{}", options.mountpoint(), lazy ? ", lazily" : "");
    mounting.unmount(lazy);
  }

  @Override
  public boolean awaitEnd(Duration timeout) throws InterruptedException {
    return ended.await(timeout.toMillis(), TimeUnit.MILLISECONDS);
  }

  /** What the mount shows. */
  private sealed interface Shown {
    record Dataset(PmfsFileSystem fileSystem) implements Shown {}

    record Outputs(WritableFileSystem fileSystem) implements Shown {}
  }
}
