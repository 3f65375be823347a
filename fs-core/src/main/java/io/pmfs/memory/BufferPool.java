package io.pmfs.memory;

import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A fixed amount of direct memory, lent in runs of 16 KiB units. A pool bounds the memory that one
 * kind of work holds: when it is used up, callers wait or do without. It allocates chunks when
 * first needed and keeps them. Thread-safe.
 */
public final class BufferPool {
  private static final Logger log = LoggerFactory.getLogger(BufferPool.class);

  private static final int UNIT_BYTES = 16 * 1024;

  /** How often a waiting thread checks whether to give up. */
  private static final long PATIENCE_MS = 100;

  private final int unitCount;
  private final int unitsPerChunk;
  private final @Nullable ByteBuffer[] chunks; // GUARDED_BY(this)
  private final BitSet lent = new BitSet(); // GUARDED_BY(this)

  /**
   * A pool of the given size.
   *
   * @param chunkBytes the largest possible loan
   */
  public BufferPool(int bytes, int chunkBytes) {
    unitCount = bytes / UNIT_BYTES;
    unitsPerChunk = chunkBytes / UNIT_BYTES;
    chunks = new @Nullable ByteBuffer[(unitCount + unitsPerChunk - 1) / unitsPerChunk];
  }

  /**
   * A buffer of exactly the given size, at most a chunk, or null if no run of free memory is long
   * enough, or the JVM cannot allocate it. First fit, lowest address.
   */
  public synchronized @Nullable Loan tryAcquire(int size) {
    int units = units(size);
    int start = lent.nextClearBit(0);
    while (start + units <= unitCount) {
      int chunkEnd = (start / unitsPerChunk + 1) * unitsPerChunk;
      int next = lent.nextSetBit(start);
      int runEnd = next < 0 ? chunkEnd : Math.min(next, chunkEnd);
      if (runEnd - start >= units) {
        ByteBuffer buffer = slice(start, size);
        if (buffer == null) {
          return null;
        }
        Loan loan = new Loan(start, units, buffer);
        lent.set(start, start + units);
        return loan;
      }
      start = lent.nextClearBit(runEnd);
    }
    return null;
  }

  private static int units(int size) {
    return (size + UNIT_BYTES - 1) / UNIT_BYTES;
  }

  /** Like {@link #tryAcquire}, but waits for memory; null only if the caller gives up. */
  public synchronized @Nullable Loan acquire(int size, BooleanSupplier givesUp)
      throws InterruptedException {
    checkLendable(size);
    Loan loan = tryAcquire(size);
    while (loan == null && !givesUp.getAsBoolean()) {
      wait(PATIENCE_MS);
      loan = tryAcquire(size);
    }
    return loan;
  }

  /** Like {@link #acquire}, but waits even if interrupted, for a step that cannot be abandoned. */
  public Loan take(int size) {
    checkLendable(size);
    Loan loan = tryAcquire(size);
    while (loan == null) {
      awaitRelease();
      loan = tryAcquire(size);
    }
    return loan;
  }

  /** Rejects a loan that is too large for the pool, which would wait forever. */
  void checkLendable(int size) {
    if (units(size) > Math.min(unitsPerChunk, unitCount)) {
      throw new IllegalArgumentException("the pool cannot lend " + size + " bytes at once");
    }
  }

  /** Waits briefly, or until memory is released. Call it in a loop. */
  @SuppressWarnings("WaitNotInLoop")
  synchronized void awaitRelease() {
    try {
      wait(PATIENCE_MS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      Thread.onSpinWait();
    }
  }

  private @Nullable ByteBuffer slice(int start, int size) {
    int index = start / unitsPerChunk;
    ByteBuffer chunk = chunks[index];
    if (chunk == null) {
      int units = Math.min(unitsPerChunk, unitCount - index * unitsPerChunk);
      try {
        chunk = ByteBuffer.allocateDirect(units * UNIT_BYTES);
      } catch (OutOfMemoryError e) {
        log.debug("no direct memory: {}", e.getMessage());
        return null;
      }
      chunks[index] = chunk;
    }
    return chunk.slice(start % unitsPerChunk * UNIT_BYTES, size);
  }

  private synchronized void giveBack(int start, int units) {
    lent.clear(start, start + units);
    notifyAll();
  }

  public synchronized boolean isWhole() {
    return lent.isEmpty();
  }

  /**
   * A lent buffer, shared by those that {@link #retain} it; returned to the pool when the last one
   * releases it.
   */
  public final class Loan implements AutoCloseable {
    private final int start;
    private final int units;
    private final ByteBuffer buffer;
    private int users = 1; // GUARDED_BY(this)

    private Loan(int start, int units, ByteBuffer buffer) {
      this.start = start;
      this.units = units;
      this.buffer = buffer;
    }

    /** A view of the memory with its own position and limit. */
    public ByteBuffer buffer() {
      return buffer.duplicate();
    }

    /** Adds a user, which must release it too. */
    public synchronized void retain() {
      if (users == 0) {
        throw new IllegalStateException("the buffer was already released");
      }
      users++;
    }

    /** Ends the caller's use. */
    public void release() {
      synchronized (this) {
        if (users == 0) {
          throw new IllegalStateException("the buffer was released twice");
        }
        if (--users > 0) {
          return;
        }
      }
      giveBack(start, units);
    }

    @Override
    public void close() {
      release();
    }
  }
}
