package io.pmfs.cluster;

import io.pmfs.metadata.FileName;
import io.pmfs.metadata.SourceVersion;
import io.pmfs.posix.DaemonThread;
import io.pmfs.posix.FsException;
import io.pmfs.source.BackingStore;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Compares versions of files with this node's own source. If the source fails or does not answer,
 * the result is unknown, and content is still read from other nodes. Thread-safe.
 */
final class OwnView implements AutoCloseable {
  private static final Logger log = LoggerFactory.getLogger(OwnView.class);

  /** Timeout: longer than a working source takes, and acceptable for a reader. */
  private static final Duration PATIENCE = Duration.ofSeconds(3);

  /** Timeout while another answer is overdue. */
  private static final Duration LITTLE_PATIENCE = Duration.ofMillis(100);

  private static final int THREADS = 16;
  private static final int IDLE_SECONDS = 30;

  enum Answer {
    SAME,
    OTHER,
    NONE
  }

  private final BackingStore source;
  private final AtomicInteger overdue = new AtomicInteger();
  private final ThreadPoolExecutor threads =
      new ThreadPoolExecutor(
          0,
          THREADS,
          IDLE_SECONDS,
          TimeUnit.SECONDS,
          new SynchronousQueue<>(),
          DaemonThread.numbered("pmfs-own-view"));

  OwnView(BackingStore source) {
    this.source = source;
  }

  /** Whether the file at a path has this version; NONE if all threads wait for the source. */
  @SuppressWarnings("FutureReturnValueIgnored") // late answers are dropped
  Answer of(FileName path, SourceVersion version) {
    CompletableFuture<Answer> asked = new CompletableFuture<>();
    Duration patience = overdue.get() > 0 ? LITTLE_PATIENCE : PATIENCE;
    try {
      threads.execute(() -> asked.complete(ask(path, version)));
      return asked.get(patience.toNanos(), TimeUnit.NANOSECONDS);
    } catch (TimeoutException e) {
      overdue.incrementAndGet();
      asked.whenComplete((late, failure) -> overdue.decrementAndGet());
      return Answer.NONE;
    } catch (RejectedExecutionException | ExecutionException e) {
      return Answer.NONE;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return Answer.NONE;
    } catch (OutOfMemoryError noThread) {
      return Answer.NONE;
    }
  }

  private Answer ask(FileName path, SourceVersion version) {
    try {
      SourceVersion own = source.status(path).attributes().version();
      return own.equals(version) ? Answer.SAME : Answer.OTHER;
    } catch (FsException | RuntimeException | Error e) {
      // Each question must end: one that never does would count as overdue forever.
      log.debug("{}: cannot compare with the source: {}", path, e.toString());
      return Answer.NONE;
    }
  }

  @Override
  public void close() {
    threads.shutdownNow();
  }
}
