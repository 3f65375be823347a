package io.pmfs.tier;

import java.io.IOException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A tier's disk and its last answer, for callers that must not wait for a disk that hangs.
 * Thread-safe.
 */
final class RememberedDisk implements Room.Disk {
  private static final Logger log = LoggerFactory.getLogger(RememberedDisk.class);

  /** A disk that works answers in microseconds. */
  private static final long PATIENCE_MS = 100;

  private final Room.Disk disk;
  private final Executor threads;
  private volatile long answer;
  private @Nullable CompletableFuture<Long> question; // GUARDED_BY(this); null if none is open

  /**
   * Asks the disk for the first time.
   *
   * @param threads runs one question at a time, which may hang
   */
  RememberedDisk(Room.Disk disk, Executor threads) throws IOException {
    this.disk = disk;
    this.threads = threads;
    this.answer = disk.usableBytes();
  }

  @Override
  public long usableBytes() throws IOException {
    answer = disk.usableBytes();
    return answer;
  }

  /** The number of free bytes; the last known one if the disk does not answer at once. */
  long recentlyUsableBytes() {
    try {
      return ask().get(PATIENCE_MS, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (ExecutionException | TimeoutException | OutOfMemoryError e) {
      log.debug("using the last known free space of a disk: {}", e.toString());
    }
    return answer;
  }

  private synchronized CompletableFuture<Long> ask() {
    CompletableFuture<Long> open = question;
    if (open == null || open.isDone()) {
      open = CompletableFuture.supplyAsync(this::askNow, threads);
      question = open;
    }
    return open;
  }

  private long askNow() {
    try {
      return usableBytes();
    } catch (IOException e) {
      throw new CompletionException(e);
    }
  }
}
