package io.pmfs.fuse;

import io.pmfs.fuse.protocol.AskedRequest;
import io.pmfs.fuse.protocol.KernelChannel;
import io.pmfs.fuse.protocol.KernelProtocol;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.metadata.Namespace;
import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.FsException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.UserDefinedFileAttributeView;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The threads that answer the requests of one session. The first thread negotiates and then starts
 * the others.
 *
 * <p>All read from the session's descriptor. When this process dies, unanswered requests stay with
 * that descriptor, and the next process makes the kernel resend them. If the kernel cannot resend,
 * and the session outlives this process, each thread has its own descriptor: the requests that it
 * had taken then fail when this process ends, instead of waiting forever.
 *
 * <p>While workers wait, {@link Relief} adds others, up to a limit; these end when they are no
 * longer needed.
 */
final class KernelWorkers {
  private static final Logger log = LoggerFactory.getLogger(KernelWorkers.class);

  private static final long POLL_MS = 2;

  /** The kernel does not cache that an attribute is absent, so each query reaches the daemon. */
  private static final String NO_ATTRIBUTE = "pmfs.none";

  private static final long IN_ROOT_NANOS = TimeUnit.SECONDS.toNanos(1);

  /** During these, the kernel lets no other request have names of the directory. */
  private static final Set<String> OF_NAMES =
      Set.of("lookup", "create", "tmpfile", "mknod", "mkdir", "symlink", "link", "unlink", "rmdir");

  private final int device;
  private final RequestHandler handler;
  private final Workforce workforce;
  private final boolean outlived;
  private final Runnable failed;
  private final Runnable left;
  private final Runnable ended;
  private final AtomicBoolean hasEnded = new AtomicBoolean();
  private final AtomicBoolean isOver = new AtomicBoolean();
  private final AtomicBoolean hasFailed = new AtomicBoolean();
  private final RequestGate gate = new RequestGate();
  private final AtomicInteger running = new AtomicInteger();
  private final List<KernelWorker> workers = new CopyOnWriteArrayList<>();
  private final Relief relief = new Relief(new Crew());
  private boolean hasWarned; // Used by the thread of `relief`.

  /**
   * Workers of a session, not started yet.
   *
   * @param device the session's descriptor
   * @param outlived whether the session continues when this process ends
   * @param failed runs once, if the session continues but this process can no longer serve it
   * @param left runs once, when the session has ended and no worker uses its descriptor any more
   * @param ended runs once, when the session has ended: after {@code left}, unless a worker still
   *     works on a request that may be ended early, which may take as long as the source does
   */
  KernelWorkers(
      int device,
      RequestHandler handler,
      Workforce workforce,
      boolean outlived,
      Runnable failed,
      Runnable left,
      Runnable ended) {
    this.device = device;
    this.handler = handler;
    this.workforce = workforce;
    this.outlived = outlived;
    this.failed = failed;
    this.left = left;
    this.ended = ended;
  }

  /**
   * Starts the workers.
   *
   * @param resumed whether another process negotiated the session
   */
  void start(boolean resumed) {
    start(() -> begin(resumed), 1);
  }

  private void start(Runnable body, int number) {
    running.incrementAndGet();
    DaemonThread.start(
        "fuse-" + number,
        () -> {
          try {
            body.run();
          } finally {
            gate.disband();
            end();
          }
        });
  }

  private void end() {
    int others = running.decrementAndGet();
    relief.call();
    // If the gate is closing, workers fetch no more, and requests wait for another process.
    if (gate.isClosing()) {
      return;
    }
    if (others == 0 && !hasEnded.get()) {
      fail();
    }
    if (others == 0 && (hasEnded.get() || !outlived)) {
      left.run();
      over();
    } else if (hasEnded.get() && others == inVain()) {
      over();
    }
  }

  /** How many workers work on requests that were ended early. */
  private int inVain() {
    int count = 0;
    for (KernelWorker worker : workers) {
      count += worker.worksInVain() ? 1 : 0;
    }
    return count;
  }

  private void over() {
    if (!isOver.getAndSet(true)) {
      ended.run();
    }
  }

  /** Called when a request cannot be answered, or none can be fetched. */
  private void fail() {
    if (!hasFailed.getAndSet(true)) {
      failed.run();
    }
  }

  private void begin(boolean resumed) {
    if (resumed) {
      resume();
    } else {
      worker(new DeviceChannel(device)).negotiate();
    }
    if (!handler.negotiation().isNegotiated()) {
      return;
    }
    DeviceChannel own = outlived && !handler.negotiation().canResend() ? ownChannel() : null;
    for (int number = 2; number <= workforce.count(); number++) {
      try {
        start(own == null ? () -> serve(null) : () -> serve(ownChannel()), number);
      } catch (OutOfMemoryError e) {
        running.decrementAndGet();
        log.error("started only {} threads to answer requests: {}", number - 1, e.getMessage());
        break;
      }
    }
    startRelief();
    startKilledPrograms();
    serve(own);
  }

  private void startRelief() {
    if (workforce.most() <= workforce.count()) {
      return;
    }
    gate.whenNoneIsLeft(relief::call);
    try {
      relief.start();
    } catch (OutOfMemoryError e) {
      log.error("cannot add threads while others wait: {}", e.getMessage());
    }
  }

  private void startKilledPrograms() {
    if (!handler.mayEndEarly(Opcode.LOOKUP)) {
      return;
    }
    try {
      new KilledPrograms(workers, this::isServing).start();
    } catch (OutOfMemoryError e) {
      log.error("killed programs end only when the source answers: {}", e.getMessage());
    }
  }

  private boolean isServing() {
    return running.get() > 0 && gate.isOpen() && !hasEnded.get();
  }

  /** Makes the kernel resend the requests that the previous process had taken and not answered. */
  private void resume() {
    boolean resent = false;
    try {
      if (handler.negotiation().isOfferable(KernelProtocol.HAS_RESEND)) {
        new KernelNotices(new DeviceChannel(device)).resend();
        resent = true;
      }
      log.info(
          "continuing an open session; requests in flight {}",
          resent ? "are resent by the kernel" : "have ended with errors");
    } catch (FsException e) {
      log.warn("the kernel cannot resend requests in flight ({})", e.errno());
    }
    handler.negotiation().resume(resent);
  }

  private @Nullable DeviceChannel ownChannel() {
    try {
      return DeviceChannel.cloneOf(device);
    } catch (FsException e) {
      log.warn("{}: requests in flight will hang if this process dies", e.getMessage());
      return null;
    }
  }

  /** Serves from the worker's own descriptor, or from the session's. */
  private void serve(@Nullable DeviceChannel own) {
    if (own == null) {
      worker(new DeviceChannel(device)).run();
      return;
    }
    try (own) {
      worker(own).run();
    }
  }

  private KernelWorker worker(KernelChannel channel) {
    KernelWorker worker =
        new KernelWorker(
            channel,
            handler,
            workforce.latencies(),
            gate,
            () -> hasEnded.set(true),
            this::fail,
            workforce.buffers());
    workers.add(worker);
    return worker;
  }

  /** The workers as {@link Relief} sees them. */
  private final class Crew implements Relief.Crew {
    private static final long WAITING_NANOS = TimeUnit.MILLISECONDS.toNanos(Relief.WAITING_MILLIS);

    @Override
    public boolean isServing() {
      return KernelWorkers.this.isServing();
    }

    @Override
    public boolean hasIdle() {
      return KernelWorkers.this.hasIdle();
    }

    @Override
    public int notWaiting() {
      long now = System.nanoTime();
      int waiting = 0;
      for (KernelWorker worker : workers) {
        waiting += worker.request().isWaiting(WAITING_NANOS, now) ? 1 : 0;
      }
      return running.get() - waiting;
    }

    @Override
    public boolean add() {
      int number = running.get() + 1;
      if (number > workforce.most()) {
        warnOnce("%d requests wait, so others may be delayed".formatted(workforce.most()));
        return false;
      }
      try {
        return add(number);
      } catch (OutOfMemoryError e) {
        warnOnce("cannot start more than %d threads: %s".formatted(number - 1, e.getMessage()));
        return false;
      }
    }

    private boolean add(int number) {
      boolean needsOwn = outlived && !handler.negotiation().canResend();
      DeviceChannel own = needsOwn ? ownChannel() : null;
      KernelWorker worker = worker(own == null ? new DeviceChannel(device) : own);
      boolean isStarted = false;
      running.incrementAndGet();
      try {
        DaemonThread.start("fuse-more-" + number, () -> serveMore(worker, own));
        isStarted = true;
        return true;
      } finally {
        if (!isStarted) {
          running.decrementAndGet();
          leave(worker, own, () -> false);
        }
      }
    }
  }

  private void serveMore(KernelWorker worker, @Nullable DeviceChannel own) {
    try {
      leave(worker, own, () -> !isSurplus());
    } finally {
      if (hasEnded.get() || gate.isClosing()) {
        gate.disband();
      }
      end();
    }
  }

  /** Serves while a condition holds, then releases the worker's resources. */
  private void leave(KernelWorker worker, @Nullable DeviceChannel own, BooleanSupplier goOn) {
    try {
      worker.runWhile(goOn);
    } finally {
      workers.remove(worker);
      if (own != null) {
        own.close();
      }
    }
  }

  /** Whether enough other workers are free. */
  private boolean isSurplus() {
    return running.get() - gate.inProgress() > 2 * Relief.KEPT;
  }

  private void warnOnce(String what) {
    if (!hasWarned) {
      hasWarned = true;
      log.warn(what);
    }
  }

  /** Requests in progress for at least {@code leastNanos}, oldest first. */
  List<AskedRequest> waiting(long leastNanos) {
    long now = System.nanoTime();
    List<AskedRequest> waiting = new ArrayList<>();
    for (KernelWorker worker : workers) {
      AskedRequest asked = worker.waiting(leastNanos, now);
      if (asked != null) {
        waiting.add(asked);
      }
    }
    waiting.sort(Comparator.comparingLong(asked -> asked.beginNanos() - now));
    return waiting;
  }

  /** Requests answered since the start. */
  long answered() {
    return gate.ended();
  }

  /** Whether a worker is free to take a request. */
  boolean hasIdle() {
    return gate.inProgress() < running.get();
  }

  /** Whether a request for names that the root may have has waited for a second. */
  boolean waitInRoot() {
    long now = System.nanoTime();
    for (KernelWorker worker : workers) {
      AskedRequest asked = worker.request().waiting(IN_ROOT_NANOS, now);
      if (asked != null && isInRoot(asked)) {
        return true;
      }
    }
    return false;
  }

  private static boolean isInRoot(AskedRequest asked) {
    return asked.operation().startsWith("rename")
        || (asked.inode() == Namespace.ROOT && OF_NAMES.contains(asked.operation()));
  }

  /**
   * Permanently stops taking requests, and waits until those in progress are answered; new requests
   * wait for another process. False on timeout.
   */
  boolean freeze(Path mountpoint, Duration timeout) throws InterruptedException {
    if (handler.negotiation().canResend()) {
      return gate.shut(timeout);
    }
    long deadline = System.nanoTime() + timeout.toNanos();
    gate.close();
    // Each worker waits in the kernel for one more request, so send requests until all have ended.
    // The last one may wait for the next process.
    try {
      DaemonThread.start("last-requests", () -> ask(mountpoint, deadline));
    } catch (OutOfMemoryError e) {
      log.warn("workers end only after another request from a reader: {}", e.getMessage());
    }
    while (running.get() > 0) {
      if (System.nanoTime() > deadline) {
        return false;
      }
      Thread.sleep(POLL_MS);
    }
    return true;
  }

  private void ask(Path mountpoint, long deadline) {
    while (running.get() > 0 && System.nanoTime() < deadline) {
      try {
        Files.getFileAttributeView(mountpoint, UserDefinedFileAttributeView.class)
            .size(NO_ATTRIBUTE);
      } catch (IOException e) {
        log.trace("answered: {}", e.getMessage());
      }
    }
  }
}
