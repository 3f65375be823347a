package io.pmfs.stage;

import com.google.common.util.concurrent.Uninterruptibles;
import io.pmfs.memory.BufferPool;
import io.pmfs.metadata.Inode;
import io.pmfs.posix.DaemonPool;
import io.pmfs.posix.DaemonThread;
import io.pmfs.stage.copies.Copies;
import io.pmfs.stage.formats.CopyFormat;
import io.pmfs.tier.Tier;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Background work for readers: fetches the rest of their files, verifies copies, and compares tiers
 * with the records.
 */
final class FetchThreads {
  private static final Logger log = LoggerFactory.getLogger(FetchThreads.class);

  /** The state is repaired no faster. */
  private static final Duration COMPARED_AGAIN = Duration.ofSeconds(1);

  private final Copies copies;
  private final Fetches fetches;
  private final int queueLength;
  private final DaemonPool threads;
  private final DaemonPool comparing;
  private final BufferPool memory;
  private final AtomicInteger queued = new AtomicInteger();
  private final LongAdder dropped = new LongAdder();
  private final CountDownLatch stopped = new CountDownLatch(1);

  /** Inodes of large copies that a thread is verifying, or will verify. */
  private final Set<Long> verifying = ConcurrentHashMap.newKeySet();

  /**
   * @param factory makes threads with a name
   */
  FetchThreads(
      Copies copies,
      Fetches fetches,
      StagerSettings settings,
      Function<String, ThreadFactory> factory) {
    this.copies = copies;
    this.fetches = fetches;
    this.memory = copies.memory().fetch();
    this.queueLength = settings.queueLength();
    // The queue is bounded by `queued`, not by its own capacity: a file that readers wait for must
    // always be accepted.
    this.threads = new DaemonPool(settings.fetchThreads(), factory.apply("fetch"));
    this.comparing = new DaemonPool(1, factory.apply("compare"));
  }

  /** Queues the rest of a file for fetching; if too many files wait, ends it and returns false. */
  boolean queue(Fetch fetch) {
    if (!fetch.queue()) {
      return true;
    }
    if (fetches.isStopping() || queued.incrementAndGet() > queueLength) {
      queued.decrementAndGet();
      dropped.increment();
      fetches.giveUp(fetch);
      return false;
    }
    try {
      threads.execute(
          () -> {
            queued.decrementAndGet();
            fetching(fetch, () -> fillByAll(fetch));
          });
      return true;
    } catch (RejectedExecutionException | Error e) {
      queued.decrementAndGet();
      fetches.giveUp(fetch);
      return false;
    }
  }

  /** Runs a part of a fetch; an error ends the fetch, because no other thread may finish it. */
  private void fetching(Fetch fetch, Runnable part) {
    guarded(
        "fetching",
        () -> {
          try {
            part.run();
          } catch (RuntimeException | Error e) {
            fetches.giveUp(fetch);
            throw e;
          }
        });
  }

  /** Fetches all unclaimed blocks, with the help of idle threads. */
  private void fillByAll(Fetch fetch) {
    int helpers = fetches.streams(fetch) - 1;
    for (int i = 0; i < helpers && !hasOthers(); i++) {
      try {
        threads.execute(() -> fetching(fetch, () -> fill(fetch, this::hasOthers)));
      } catch (RejectedExecutionException | Error e) {
        break;
      }
    }
    fill(fetch, () -> false);
  }

  private boolean hasOthers() {
    return queued.get() > 0;
  }

  /**
   * Fetches unclaimed blocks, in the order that the source proposes.
   *
   * @param leaves whether to leave the rest to other threads
   */
  private void fill(Fetch fetch, BooleanSupplier leaves) {
    if (!fetch.enter()) {
      return;
    }
    try {
      while (!leaves.getAsBoolean() && fetch.awaitFree(fetches::isStopping)) {
        // Acquire memory before claiming: a reader may need this very block.
        try (BufferPool.Loan loan = memory.acquire(fetch.blockSize(0), fetches::isStopping)) {
          int block = loan == null ? -1 : fetches.claimNext(fetch);
          if (loan != null && block >= 0) {
            ByteBuffer content = loan.buffer().limit(fetch.blockSize(block));
            if (!fetches.fetch(fetch, block, content)) {
              return;
            }
            fetches.countForReaders(fetch.blockSize(block));
            fetch.hold(block, loan);
            fetches.store(fetch, block, content);
          }
        }
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      fetches.giveUp(fetch);
    } finally {
      fetch.exit();
    }
  }

  void verify(Inode inode) {
    if (verifying.add(inode.number())) {
      try {
        threads.execute(
            () -> {
              try {
                guarded("verifying", () -> copies.verify(inode));
              } finally {
                verifying.remove(inode.number());
              }
            });
      } catch (RejectedExecutionException | Error e) {
        verifying.remove(inode.number());
      }
    }
  }

  /**
   * Compares the tiers with the records, without blocking the caller: one after the other, and
   * again those that could not be compared because the state failed.
   */
  void compareTiers() {
    copies.formats().forEach(CopyFormat::isToBeCompared);
    comparing.execute(
        () -> {
          List<Tier> left = new ArrayList<>(copies.tiers());
          do {
            left.removeIf(this::isDone);
          } while (!left.isEmpty() && !isStoppedSoon());
        });
    comparing.shutdown();
  }

  /** Compares a tier; false if that is to be repeated. */
  private boolean isDone(Tier tier) {
    boolean[] isDone = {true};
    guarded(
        "comparing " + tier.name(),
        () -> isDone[0] = copies.compareWithRecords(tier, fetches::isStopping));
    return isDone[0] || tier.hasFailed();
  }

  private boolean isStoppedSoon() {
    return Uninterruptibles.awaitUninterruptibly(stopped, COMPARED_AGAIN);
  }

  /** Files that wait for a thread. */
  long queued() {
    return queued.get();
  }

  /** Files rejected because too many were queued. */
  long dropped() {
    return dropped.sum();
  }

  static void guarded(String what, Runnable task) {
    try {
      task.run();
    } catch (RuntimeException | Error e) {
      log.error("{} failed", what, e);
    }
  }

  static ThreadFactory named(String name, Runnable threadStart) {
    ThreadFactory numbered = DaemonThread.numbered(name);
    return task ->
        numbered.newThread(
            () -> {
              threadStart.run();
              task.run();
            });
  }

  /** Drops queued work; blocks being read are finished. */
  void stop() {
    stopped.countDown();
    threads.getQueue().clear();
    threads.shutdown();
    comparing.shutdown();
  }

  boolean awaitStop(Duration timeout) throws InterruptedException {
    return threads.awaitTermination(timeout.toNanos(), TimeUnit.NANOSECONDS)
        && comparing.awaitTermination(timeout.toNanos(), TimeUnit.NANOSECONDS);
  }

  void abandon() {
    threads.shutdownNow();
  }
}
