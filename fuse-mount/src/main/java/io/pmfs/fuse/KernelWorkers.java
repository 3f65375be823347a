package io.pmfs.fuse;

import io.pmfs.tier.FsException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.UserDefinedFileAttributeView;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The threads that answer the requests of one session. The first one negotiates and then starts the
 * others.
 *
 * <p>All read from the session's descriptor, whose unanswered requests stay with it when this
 * process dies: another one has the kernel send them again. Where the kernel cannot do that, and
 * the session outlives this process, each thread has a descriptor of its own: what it had taken
 * then ends with this process, by an error, instead of never.
 */
final class KernelWorkers {
  private static final Logger log = LoggerFactory.getLogger(KernelWorkers.class);

  private static final long POLL_MS = 2;

  /** What is not there is asked of us each time. */
  private static final String NO_ATTRIBUTE = "pmfs.none";

  private final int device;
  private final KernelOperations operations;
  private final int count;
  private final boolean outlived;
  private final Runnable failed;
  private final Runnable ended;
  private final AtomicBoolean hasEnded = new AtomicBoolean();
  private final AtomicBoolean hasFailed = new AtomicBoolean();
  private final RequestGate gate = new RequestGate();
  private final AtomicInteger running = new AtomicInteger();
  private final List<KernelRequest> requests = new CopyOnWriteArrayList<>();

  /** Tells workers from others. */
  private static final class Worker extends Thread {
    Worker(Runnable body, int number) {
      super(body, "fuse-" + number);
      setDaemon(true);
    }
  }

  /**
   * Workers of a session that are not started yet.
   *
   * @param device the session's descriptor
   * @param outlived whether the session goes on when this process ends
   * @param failed runs once, if the session goes on and cannot be served here any more
   * @param ended runs once, when the session has ended
   */
  KernelWorkers(
      int device,
      KernelOperations operations,
      int count,
      boolean outlived,
      Runnable failed,
      Runnable ended) {
    this.device = device;
    this.operations = operations;
    this.count = count;
    this.outlived = outlived;
    this.failed = failed;
    this.ended = ended;
  }

  /** Whether the caller is one that answers requests. */
  static boolean isWorker() {
    return Thread.currentThread() instanceof Worker;
  }

  /** Starts; a resumed session was negotiated by another process. */
  void start(boolean resumed) {
    start(() -> begin(resumed), 1);
  }

  private void start(Runnable body, int number) {
    running.incrementAndGet();
    new Worker(
            () -> {
              try {
                body.run();
              } finally {
                end();
              }
            },
            number)
        .start();
  }

  private void end() {
    // What waits for workers that were told to fetch no more waits for another process.
    if (running.decrementAndGet() > 0 || gate.isClosing()) {
      return;
    }
    if (!hasEnded.get()) {
      fail();
    }
    if (hasEnded.get() || !outlived) {
      ended.run();
    }
  }

  /** A request cannot be answered here, or none can be had. */
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
    if (!operations.isNegotiated()) {
      return;
    }
    DeviceChannel own = outlived && !operations.canResend() ? ownChannel() : null;
    for (int number = 2; number <= count; number++) {
      try {
        start(own == null ? () -> serve(null) : () -> serve(ownChannel()), number);
      } catch (OutOfMemoryError e) {
        running.decrementAndGet();
        log.error("only {} threads answer requests: {}", number - 1, e.getMessage());
        break;
      }
    }
    serve(own);
  }

  /** Has the kernel send again what the process before this one had taken and not answered. */
  private void resume() {
    boolean resent = false;
    try {
      if (operations.isOfferable(KernelProtocol.HAS_RESEND)) {
        new KernelNotices(new DeviceChannel(device)).resend();
        resent = true;
      }
      log.info(
          "going on with a session that was open; what was in flight {}",
          resent ? "is sent again by the kernel" : "has ended with errors");
    } catch (FsException e) {
      log.warn("the kernel cannot send again what was in flight ({})", e.errno());
    }
    operations.resume(resent);
  }

  private @Nullable DeviceChannel ownChannel() {
    try {
      return DeviceChannel.cloneOf(device);
    } catch (FsException e) {
      log.warn("{}: requests in flight will hang if this process dies", e.getMessage());
      return null;
    }
  }

  /** Serves by a descriptor of one's own, or by the session's. */
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
        new KernelWorker(channel, operations, gate, () -> hasEnded.set(true), this::fail);
    requests.add(worker.request());
    return worker;
  }

  /** Requests that have waited so long for their answer, the longest first. */
  List<AskedRequest> waiting(long leastNanos) {
    long now = System.nanoTime();
    List<AskedRequest> waiting = new ArrayList<>();
    for (KernelRequest request : requests) {
      AskedRequest asked = request.waiting(leastNanos, now);
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

  /** Whether a request could be taken now. */
  boolean hasIdle() {
    return gate.inProgress() < running.get();
  }

  /**
   * Takes no more requests, for good, and waits until those in progress are answered; what comes
   * waits for another process. Says whether it did within the time.
   */
  boolean freeze(Path mountpoint, Duration timeout) throws InterruptedException {
    if (operations.canResend()) {
      return gate.shut(timeout);
    }
    long deadline = System.nanoTime() + timeout.toNanos();
    gate.close();
    // Each waits in the kernel for one more request. The last of ours may wait for the successor.
    Thread asker = new Thread(() -> ask(mountpoint, deadline), "last-requests");
    asker.setDaemon(true);
    asker.start();
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
