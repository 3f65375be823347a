package io.pmfs.daemon.requests;

import io.pmfs.fuse.protocol.AnsweredRequest;
import io.pmfs.fuse.protocol.AskedRequest;
import io.pmfs.fuse.protocol.Opcode;
import io.pmfs.fuse.protocol.RequestListener;
import io.pmfs.metadata.FileName;
import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.Errno;
import java.time.Duration;
import java.time.Instant;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongFunction;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Formats a line of each answered request for the access log and for readers, and of slow requests
 * for the daemon's log. Requests enter a lock-free queue that one thread drains. If the queue is
 * full, further requests are only counted, and a line states how many. Without an access log and
 * readers, only slow requests enter the queue. The same thread checks each second for requests that
 * have waited too long. Thread-safe.
 */
public final class RequestLog implements RequestListener, AutoCloseable {
  /** The largest number of readers at a time. */
  public static final int MOST_READERS = 4;

  /** About 200 bytes each. */
  static final int QUEUE_LENGTH = 32_768;

  private static final Logger log = LoggerFactory.getLogger(RequestLog.class);

  /** How many requests are formatted before their lines are passed on. */
  private static final int BATCH = 512;

  private static final long PAUSE_NANOS = Duration.ofMillis(100).toNanos();

  /** After this many pauses without a request the thread waits for a signal. */
  private static final int QUIET_PAUSES = 5;

  private static final long LONGEST_PAUSE_NANOS = Duration.ofSeconds(1).toNanos();
  private static final Duration LAST_LINES = Duration.ofSeconds(2);

  private final RequestPaths paths;
  private final LongFunction<List<AskedRequest>> inProgress;
  private final @Nullable AccessLogFile file;
  private final SlowRequests slow;
  private final InstantSource clock;
  private final int queueLength;
  private final List<LineReader> readers = new CopyOnWriteArrayList<>();
  private final Queue<AnsweredRequest> queue = new ConcurrentLinkedQueue<>();
  private final FailedRequests failed;
  private final AtomicInteger queued = new AtomicInteger();
  private final LongAdder dropped = new LongAdder();
  private final Thread writer = DaemonThread.lasting("requests", this::run);
  private long mentioned; // dropped requests that lines mention; only for the writer
  private long looked = System.nanoTime(); // the last look for waiting requests; for the writer
  private volatile long leastNanos;
  private volatile boolean isWaiting;
  private volatile boolean isClosed;

  /**
   * Does not start yet; see {@link #start}.
   *
   * @param paths returns the path of an inode below the root, or null; throws once the namespace is
   *     closed
   * @param inProgress returns unanswered requests that began at least so many nanoseconds ago,
   *     oldest first
   * @param file receives all lines and is closed with this log; null if there is none
   */
  public RequestLog(
      LongFunction<@Nullable FileName> paths,
      LongFunction<List<AskedRequest>> inProgress,
      @Nullable AccessLogFile file,
      SlowRequests slow,
      InstantSource clock) {
    this(paths, inProgress, file, slow, clock, QUEUE_LENGTH);
  }

  RequestLog(
      LongFunction<@Nullable FileName> paths,
      LongFunction<List<AskedRequest>> inProgress,
      @Nullable AccessLogFile file,
      SlowRequests slow,
      InstantSource clock,
      int queueLength) {
    this.paths = new RequestPaths(paths);
    this.inProgress = inProgress;
    this.file = file;
    this.slow = slow;
    this.clock = clock;
    this.queueLength = queueLength;
    this.failed = new FailedRequests(clock);
    decideWhatToTell();
  }

  public RequestLog start() {
    writer.start();
    return this;
  }

  private void decideWhatToTell() {
    leastNanos = file != null || !readers.isEmpty() ? 0 : slow.leastNanos();
  }

  /** The access log's file; null if there is none. */
  public @Nullable AccessLogFile file() {
    return file;
  }

  /** How many requests are missing in the access log. */
  public long missing() {
    AccessLogFile to = file;
    return dropped.sum() + (to == null ? 0 : to.missing());
  }

  /** Requests that have waited at least this long for an answer, oldest first. */
  public List<WaitingRequest> waiting(Duration least) {
    return waiting(least.toNanos());
  }

  private List<WaitingRequest> waiting(long leastNanos) {
    List<AskedRequest> asked = inProgress.apply(leastNanos);
    long now = System.nanoTime();
    return asked.stream()
        .map(one -> new WaitingRequest(one, paths.call(one), now - one.beginNanos()))
        .toList();
  }

  /** Adds a reader; returns false if there are too many. */
  public synchronized boolean add(LineReader reader) {
    if (readers.size() >= MOST_READERS || isClosed) {
      return false;
    }
    readers.add(reader);
    decideWhatToTell();
    return true;
  }

  public synchronized void remove(LineReader reader) {
    readers.remove(reader);
    decideWhatToTell();
  }

  @Override
  public long leastNanos() {
    return leastNanos;
  }

  @Override
  public boolean wants(Opcode opcode, int errno) {
    return FailedRequests.isFailure(opcode.word(), errno);
  }

  private static boolean isFailure(AnsweredRequest request) {
    return FailedRequests.isFailure(request.asked().operation(), request.errno());
  }

  public FailedRequests.Counts failed() {
    return failed.counts();
  }

  @Override
  public void answered(AnsweredRequest request) {
    if (isClosed) {
      return;
    }
    if (isFailure(request)) {
      failed.count();
    }
    int length = queued.incrementAndGet();
    if (length > queueLength) {
      queued.decrementAndGet();
      dropped.increment();
    } else {
      queue.add(request);
    }
    // Checked after adding: either this thread sees that the writer waits, or the writer sees the
    // request. A pausing writer is woken early when half of the queue is full.
    if (isWaiting || length == queueLength / 2) {
      isWaiting = false;
      LockSupport.unpark(writer);
    }
  }

  private void run() {
    int quiet = 0;
    while (!isClosed) {
      quiet = writeSome() ? 0 : quiet + 1;
      slow.settle();
      lookForWaiting();
      if (quiet == 0) {
        continue;
      }
      if (quiet <= QUIET_PAUSES) {
        LockSupport.parkNanos(PAUSE_NANOS);
      } else {
        waitForMore();
      }
    }
    while (writeSome()) {
      log.trace("the last lines");
    }
  }

  /** Polls for unanswered requests, because no event reports them. */
  private void lookForWaiting() {
    long now = System.nanoTime();
    if (slow.isOn() && now - looked >= LONGEST_PAUSE_NANOS) {
      looked = now;
      slow.report(waiting(slow.leastNanos()));
    }
  }

  /**
   * Waits for a signal only when idle, because waking a thread costs a request more than entering
   * the queue.
   */
  private void waitForMore() {
    isWaiting = true;
    if (queue.isEmpty() && mentioned == dropped.sum() && !isClosed) {
      if (slow.isOn()) {
        LockSupport.parkNanos(LONGEST_PAUSE_NANOS);
      } else {
        LockSupport.park(this);
      }
    }
    isWaiting = false;
  }

  /** Writes a batch; false if the queue was empty. */
  private boolean writeSome() {
    List<AnsweredRequest> batch = new ArrayList<>();
    AnsweredRequest next;
    while (batch.size() < BATCH && (next = queue.poll()) != null) {
      queued.decrementAndGet();
      batch.add(next);
    }
    long missing = dropped.sum() - mentioned;
    if (batch.isEmpty() && missing == 0) {
      return false;
    }
    mentioned += missing;
    try {
      write(batch, missing);
    } catch (RuntimeException e) {
      log.error("the lines of {} requests are lost", batch.size() + missing, e);
    }
    return true;
  }

  private void write(List<AnsweredRequest> batch, long missing) {
    boolean isWanted = file != null || !readers.isEmpty();
    StringBuilder text = new StringBuilder(batch.size() * 160);
    Instant now = clock.instant();
    long nowNanos = System.nanoTime();
    for (AnsweredRequest request : batch) {
      boolean isSlow = request.nanos() >= slow.leastNanos();
      boolean isFailed = isFailure(request);
      if (isWanted || isSlow || isFailed) {
        Instant begin = now.minusNanos(nowNanos - request.asked().beginNanos());
        LogLine.Request line = line(request, begin);
        if (isWanted) {
          line.appendTo(text);
          text.append('\n');
        }
        if (isSlow) {
          slow.report(line);
        }
        if (isFailed) {
          failed.describe(line.call(), line.outcome(), now);
        }
      }
    }
    if (missing > 0) {
      String reason = "they arrived faster than lines can be written";
      text.append(new LogLine.Missing(now, missing, reason).text()).append('\n');
    }
    int requests = (int) Math.min(Integer.MAX_VALUE, batch.size() + missing);
    AccessLogFile to = file;
    if (to != null) {
      to.take(text.toString(), requests);
    }
    for (LineReader reader : readers) {
      reader.take(text.toString(), requests);
    }
  }

  private LogLine.Request line(AnsweredRequest request, Instant begin) {
    return new LogLine.Request(
        begin,
        paths.call(request.asked()),
        request.errno() == 0 ? LogLine.OK : Errno.of(request.errno()).name(),
        request.bytes(),
        request.nanos() / 1000);
  }

  /** Writes the queued requests for up to two seconds and closes the file. Idempotent. */
  @Override
  public void close() {
    synchronized (this) {
      isClosed = true;
      leastNanos = Long.MAX_VALUE;
    }
    LockSupport.unpark(writer);
    try {
      writer.join(LAST_LINES.toMillis());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    AccessLogFile to = file;
    if (to != null && !writer.isAlive()) {
      to.close();
    }
  }
}
