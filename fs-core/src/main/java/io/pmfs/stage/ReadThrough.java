package io.pmfs.stage;

import io.pmfs.memory.BufferPool;
import io.pmfs.memory.ReadResult;
import io.pmfs.memory.ReadSink;
import io.pmfs.metadata.Inode;
import io.pmfs.posix.Errno;
import io.pmfs.posix.FsException;
import io.pmfs.stage.formats.Blocks;
import io.pmfs.stage.formats.MismatchException;
import io.pmfs.stage.formats.NoSink;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Answers readers from fetches, block by block. A reader reads the block that it needs on its own
 * thread, is answered from memory, and leaves writing the block to the store threads. The fetch
 * threads read the rest of a large file.
 *
 * <p>A {@link BufferPool} bounds the memory between them. When it is used up, the reader waits
 * briefly. If none is given back, it reads the source directly, and the fetch threads read the
 * block again later.
 */
final class ReadThrough {
  private static final Logger log = LoggerFactory.getLogger(ReadThrough.class);

  /** How long a reader of a shared source waits for memory while no tier takes a block. */
  private static final Duration PATIENCE = Duration.ofMillis(500);

  /** Store threads that must first get a processor are not slow. */
  private static final Duration LEAST_WAIT = Duration.ofMillis(2);

  /** How long no reader waits after one has waited in vain. */
  private static final Duration HURRY = Duration.ofSeconds(5);

  private final Fetches fetches;
  private final FetchThreads fetchThreads;
  private final Executor storeThreads;
  private final BufferPool memory;
  private final boolean isShared;

  /** How long the source took for the last block that a reader needed. */
  private volatile long readNanos;

  /** Until then no reader waits for memory. */
  private volatile long hurriedUntilNanos = System.nanoTime();

  /**
   * @param memory for blocks between source and tier
   * @param isShared whether nodes share the source: they would all wait for content that one of
   *     them, without memory, reads twice
   */
  ReadThrough(
      Fetches fetches,
      FetchThreads fetchThreads,
      Executor storeThreads,
      BufferPool memory,
      boolean isShared) {
    this.fetches = fetches;
    this.fetchThreads = fetchThreads;
    this.storeThreads = storeThreads;
    this.memory = memory;
    this.isShared = isShared;
  }

  /**
   * Serves a range, up to the end of its first block, from a running or new fetch of the file.
   *
   * @return bytes passed to the sink; 0 if there is no fetch, or it ended first
   */
  int serve(Inode inode, long offset, int size, ReadSink sink, OriginCounters served)
      throws FsException {
    Fetch fetch = fetchOf(inode);
    if (fetch == null) {
      return 0;
    }
    if (offset + inBlock(fetch, offset, size) >= inode.attributes().size()) {
      // Set early: the copy may be complete before this read is answered.
      fetch.readToItsEnd();
    }
    return serve(fetch, offset, size, sink, served);
  }

  /**
   * Like {@link #serve}, for a block that a running fetch has already; otherwise 0. Waits for no
   * block.
   */
  int serveIfRead(Inode inode, long offset, int size, ReadSink sink, OriginCounters served)
      throws FsException {
    Fetch fetch = fetches.running(inode);
    // A block stays read, so claiming it does not wait.
    return fetch != null && fetch.isRead(Blocks.index(offset))
        ? serve(fetch, offset, size, sink, served)
        : 0;
  }

  /** Makes sure that the first block of a file was fetched; false if there is no fetch for it. */
  boolean readFirstBlock(Inode inode, OriginCounters served) throws FsException {
    Fetch fetch = fetchOf(inode);
    try (NoSink nothing = new NoSink(memory)) {
      return fetch != null && (fetch.isRead(0) || serveBlock(fetch, 0, 0, 0, nothing, served));
    }
  }

  /**
   * A running or new fetch; null if there is none. A failure is only logged, because the reader can
   * do without.
   */
  private @Nullable Fetch fetchOf(Inode inode) {
    try {
      return fetches.forReader(inode);
    } catch (RuntimeException | Error e) {
      log.error("cannot start a copy of inode {}", inode.number(), e);
      return null;
    }
  }

  private static int inBlock(Fetch fetch, long offset, int size) {
    int block = Blocks.index(offset);
    return (int) Math.min(size, Blocks.offset(block) + fetch.blockSize(block) - offset);
  }

  private int serve(Fetch fetch, long offset, int size, ReadSink sink, OriginCounters served)
      throws FsException {
    int block = Blocks.index(offset);
    int count = inBlock(fetch, offset, size);
    int start = (int) (offset - Blocks.offset(block));
    return serveBlock(fetch, block, start, count, sink, served) ? count : 0;
  }

  /** Serves part of a block, reading it if needed; false if the fetch cannot provide it. */
  private boolean serveBlock(
      Fetch fetch, int block, int start, int count, ReadSink sink, OriginCounters served)
      throws FsException {
    if (!fetch.enter()) {
      return false;
    }
    try {
      return claimAndServe(fetch, block, start, count, sink, served);
    } catch (MismatchException e) {
      fetches.giveUp(fetch);
      return false;
    } catch (IOException e) {
      fetch.writer().tier().failed(e);
      return false;
    } finally {
      fetch.exit();
    }
  }

  private boolean claimAndServe(
      Fetch fetch, int block, int start, int count, ReadSink sink, OriginCounters served)
      throws FsException, IOException {
    while (true) {
      switch (fetch.claim(block)) {
        case READ_IT -> {
          try (BufferPool.Loan loan = readClaimed(fetch, block)) {
            if (loan != null) {
              served.fromSource(count);
              deliver(loan.buffer().slice(start, count), sink);
            }
            return loan != null;
          }
        }
        case HELD -> {
          try (BufferPool.Loan loan = fetch.held(block)) {
            if (loan != null) {
              served.fetched(count);
              deliver(loan.buffer().slice(start, count), sink);
              return true;
            }
          }
        }
        case STORED -> {
          fetch.writer().copyTo(Blocks.offset(block) + start, count, sink);
          served.fetched(count);
          return true;
        }
        case ENDED -> {
          return false;
        }
      }
    }
  }

  /** Passes bytes in memory to the sink. A failure is final: no other tier has them. */
  static void deliver(ByteBuffer bytes, ReadSink sink) throws FsException {
    try {
      sink.accept(new ReadResult.Bytes(bytes));
    } catch (IOException e) {
      throw new FsException(Errno.EIO, "cannot pass the data to the reader", e);
    }
  }

  /**
   * Reads a claimed block into memory, returned retained, and has the store threads write it; null
   * if the reader must read the source directly.
   *
   * <p>In any case the claim is released or the fetch ends, because others wait for the block.
   */
  private BufferPool.@Nullable Loan readClaimed(Fetch fetch, int block) throws FsException {
    try {
      // The reader fetches a single block. The rest of a larger file needs a background thread,
      // queued after the claim, so that the reader does not wait for it.
      if (fetch.blockCount() > 1 && !fetchThreads.queue(fetch)) {
        fetch.release(block);
        return null;
      }
      BufferPool.Loan loan = memoryFor(fetch, block);
      if (loan == null) {
        fetch.release(block);
        fetchThreads.queue(fetch);
        return null;
      }
      return read(fetch, block, loan) ? loan : null;
    } catch (RuntimeException | Error e) {
      log.error("cannot copy block {} of {}", block, fetches.name(fetch.inode()), e);
      fetches.giveUp(fetch);
      return null;
    }
  }

  /** Memory for a claimed block; null if there is none now. */
  private BufferPool.@Nullable Loan memoryFor(Fetch fetch, int block) throws FsException {
    int size = fetch.blockSize(block);
    BufferPool.Loan loan = memory.tryAcquire(size);
    if (loan != null || System.nanoTime() - hurriedUntilNanos < 0) {
      return loan;
    }
    try {
      loan =
          memory.acquire(size, isShared ? whenTiersStop(fetch) : whenReadingTwiceIsFaster(fetch));
    } catch (InterruptedException e) {
      fetch.release(block);
      fetchThreads.queue(fetch);
      throw Fetch.interrupted();
    }
    if (loan == null) {
      hurriedUntilNanos = System.nanoTime() + HURRY.toNanos();
    }
    return loan;
  }

  /** Whether the fetch has ended, or its reader has waited for as long as a second read takes. */
  private BooleanSupplier whenReadingTwiceIsFaster(Fetch fetch) {
    long began = System.nanoTime();
    long most = Math.max(LEAST_WAIT.toNanos(), readNanos);
    return () -> !fetch.isRunning() || System.nanoTime() - began > most;
  }

  /** Whether the fetch has ended, or no tier has taken a block for a while. */
  private BooleanSupplier whenTiersStop(Fetch fetch) {
    long[] last = {fetches.blocksStored(), System.nanoTime()};
    return () -> {
      long stored = fetches.blocksStored();
      long now = System.nanoTime();
      if (stored != last[0]) {
        last[0] = stored;
        last[1] = now;
      }
      return !fetch.isRunning() || now - last[1] > PATIENCE.toNanos();
    };
  }

  /** Reads a claimed block; false, with the loan released, if the source fails. */
  private boolean read(Fetch fetch, int block, BufferPool.Loan loan) {
    boolean isRead = false;
    long began = System.nanoTime();
    try {
      isRead = fetches.fetch(fetch, block, loan.buffer());
      readNanos = System.nanoTime() - began;
    } finally {
      if (!isRead) {
        loan.release();
      }
    }
    if (isRead) {
      // The store threads may be done with the loan before this reader is.
      fetch.hold(block, loan);
      fetches.countForReaders(fetch.blockSize(block));
      store(fetch, block);
    }
    return isRead;
  }

  private void store(Fetch fetch, int block) {
    try {
      storeThreads.execute(() -> FetchThreads.guarded("storing", () -> storeHeld(fetch, block)));
    } catch (RejectedExecutionException | Error e) {
      fetches.giveUp(fetch);
    }
  }

  private void storeHeld(Fetch fetch, int block) {
    BufferPool.Loan loan = fetch.held(block);
    if (loan == null) {
      return;
    }
    try (loan) {
      if (fetch.enter()) {
        try {
          fetches.store(fetch, block, loan.buffer());
        } finally {
          fetch.exit();
        }
      }
    } catch (RuntimeException | Error e) {
      fetches.giveUp(fetch);
      throw e;
    }
  }
}
